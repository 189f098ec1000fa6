"""The runs in a place that holds several, each in one line: its status, its length, its first incident."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from spikeview.format import count, shown
from spikeview.importers import Asked, RunError, open_run, runs_in
from spikeview.importers.places import places
from spikeview.meaning import LOG
from spikeview.rules.diagnosis import diagnose
from spikeview.run import Run
from spikeview.ui.task import Tell
from spikeview.ui.values import step_label, told


@dataclass(frozen=True)
class Entry:
    """One run of several: where it lies, what it is called there, and what to ask for."""

    path: str
    name: str
    asked: Asked


@dataclass(frozen=True)
class Listing:
    """A place that holds several runs."""

    place: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Listed:
    """What is said of one run; `role` colours its first incident."""

    entry: Entry
    rows: str = ""
    status: str = ""
    first: str = ""
    role: str = "muted"


def listing_of(path: str, asked: Asked) -> Listing | None:
    """The runs and logs below a directory, or the runs within a log; None where a path holds one run.

    Raises RunError where nothing there can be read.
    """
    found = places(path)
    if found != [path]:
        entries = [Entry(place, Path(place).relative_to(path).as_posix(), asked) for place in found]
        return Listing(path, tuple(entries))
    names = runs_in(path) if asked.run is None else []
    if len(names) < 2:
        return None
    return Listing(path, tuple(Entry(path, name, replace(asked, run=name)) for name in names))


def summaries(listing: Listing, tell: Tell) -> None:
    """Read and diagnose each run, and tell of each in a line; what cannot be read says why."""
    for entry in listing.entries:
        try:
            tell(summary(open_run(entry.path, asked=entry.asked), entry))
        except RunError as error:
            tell(Listed(entry, "", "cannot be read", str(error).split(": ", 1)[-1], "bad"))


def summary(run: Run, entry: Entry) -> Listed:
    """A run that was read, in one line."""
    diagnosis = diagnose(run)
    rows, status = count(len(run)), _status(run)
    if not diagnosis.incidents:
        return Listed(entry, rows, status, "no incident", "good")
    incident = diagnosis.incidents[0]
    first = incident.incident.first_bad
    more = f" · {len(diagnosis.incidents)} in all" if len(diagnosis.incidents) > 1 else ""
    what = " ".join(told(first)).strip()
    text = f"step {step_label(incident.view.run, first.position)} {what}{more}"
    return Listed(entry, rows, status, text, "bad" if incident.incident.severity == "critical" else "warn")


def _status(run: Run) -> str:
    """Of a log its format; of a recorded run whether it was closed."""
    log = run.manifest.get(LOG)
    if isinstance(log, dict):
        return shown(str(log.get("format", "log")), 40)
    ended = run.manifest.get("closed")
    return "closed" if ended else "" if ended is None else "open, or killed"
