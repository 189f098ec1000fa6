"""From a path to everything the window shows, away from the GUI thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spikeview.importers import Asked, RunError
from spikeview.report.headline import no_incident
from spikeview.rules.diagnosis import UNNAMED, Diagnosis, View, diagnose
from spikeview.run import Run
from spikeview.ui.facts import facts
from spikeview.ui.listing import Listing, listing_of
from spikeview.ui.opened import Opened, Rows, view_of
from spikeview.ui.panels import PANELS
from spikeview.ui.ranked import RankedRun, later, of_rank, read
from spikeview.ui.stretches import LONG, is_long
from spikeview.ui.task import Tell

AT_ONCE = LONG
# What all panels share is made of these, and what says where a column applies.
SHARED = ("step", "segment", "attempted", "executed", "moved", "skip_reason")

EVERY = tuple(panel.id for panel in PANELS)


def opened(diagnosis: Diagnosis, wanted: Collection[str] = EVERY, diagnosed: bool = True) -> Opened:
    """With the series of the wanted panels of the first view, so that the window only has to draw."""
    made = _with(diagnosis, wanted, diagnosed)
    made.hold()
    return made


def found(path: str, wanted: Collection[str], tell: Tell, asked: Asked | None = None) -> Opened | Listing:
    """The run at a path, or what there is to choose from where it holds several. Raises what `prepare` raises."""
    tell("Looking …")
    return listing_of(path, asked or Asked()) or prepare(path, wanted, tell, asked)


def prepare(path: str, wanted: Collection[str], tell: Tell, asked: Asked | None = None) -> Opened:
    """Read, build the series, and diagnose what is not long; `tell` hears of the steps. A long run is to be finished.

    Raises what `open_run` and `diagnose` raise.
    """
    tell("Reading …")
    run = read(path, tell, asked)
    if len(run) <= AT_ONCE:
        tell("Diagnosing …")
        return opened(diagnosed_among_ranks(run), wanted)
    tell("Drawing …")
    return _with(undiagnosed(run), wanted, False)


def finished(early: Opened) -> Opened:
    """A long run with the cells behind its curves, and its diagnosis. Raises what `diagnose` raises."""
    early.hold()
    return replace(early, diagnosis=diagnosed_among_ranks(early.diagnosis.run), diagnosed=True)


def to_compare_with(path: str, tell: Tell) -> Opened:
    """A run with its diagnosis, and no series yet. Raises as `prepare`, and RunError for a place that holds several."""
    several = listing_of(path, Asked())
    if several is not None:
        raise RunError(f"{path}: holds {len(several.entries)} runs; choose one of them")
    found = prepare(path, (), tell)
    return found if found.diagnosed else finished(found)


def columns_of(wanted: Collection[str]) -> tuple[str, ...]:
    """What is read of a run to show these panels."""
    return (*SHARED, *(name for panel in PANELS if panel.id in wanted for name in panel.reads))


def other_rank(shown: Opened, rank: int, wanted: Collection[str]) -> Opened:
    """Another rank of the same training, diagnosed among all of them."""
    run = shown.diagnosis.run
    assert isinstance(run, RankedRun)
    return opened(diagnosed_among_ranks(of_rank(run, rank)), wanted)


def diagnosed_among_ranks(run: Run, before: Diagnosis | None = None) -> Diagnosis:
    """The diagnosis of a run, beside its other ranks where they were read; it goes on from an earlier one, `before`."""
    found = diagnose(run, run.ranks.runs if isinstance(run, RankedRun) else None, before)
    no_incident(found)  # what it counts is kept, and is not to be counted in the GUI thread
    for first in found.incidents[:1]:
        tuple(first.findings)  # these are worked out when they are first read
    return found


def refreshed(shown: Opened, wanted: Collection[str]) -> Opened:
    """The run as it is now, with the diagnosis of before until there is a newer one; the same where nothing is new.

    A short run is diagnosed at once; of another run in its place nothing of before is kept. Raises RunError where it
    cannot be read any more.
    """
    before = shown.diagnosis
    run = later(before.run)
    if run is before.run:
        return shown
    if len(run) <= AT_ONCE:
        return _with(diagnosed_among_ranks(run, before), wanted, True, shown)
    made = undiagnosed(run)
    if run.follows(before.run):
        known = {view.optimizer: view for view in before.views}
        views = tuple(_grown(known.get(each.optimizer, each), each.run) for each in made.views)
        made = Diagnosis(run, views, before.incidents, before.checks, grounds=before.grounds)
    later_on = _with(made, wanted, False, shown)
    later_on.hold()
    return later_on


def with_diagnosis(shown: Opened, diagnosis: Diagnosis) -> Opened:
    """A diagnosis that may be of fewer rows than there are by now."""
    known = {view.optimizer: view for view in diagnosis.views}
    views = tuple(_grown(known.get(each.optimizer, each), each.run) for each in shown.diagnosis.views)
    made = Diagnosis(shown.diagnosis.run, views, diagnosis.incidents, diagnosis.checks, grounds=diagnosis.grounds)
    return replace(shown, diagnosis=made, diagnosed=True)


def undiagnosed(run: Run) -> Diagnosis:
    """Only the views of a run."""
    return Diagnosis(run, tuple(View(name, run.of(name), {}) for name in run.optimizers or [UNNAMED]), (), ())


def _with(diagnosis: Diagnosis, wanted: Collection[str], diagnosed: bool, shown: Opened | None = None) -> Opened:
    """What is shown of a diagnosis, of which not all cells are held yet; `shown` is an earlier reading of the run."""
    if not is_long(diagnosis.run):
        diagnosis.run.fetch(columns_of(wanted))
    views = diagnosis.views
    earlier: Sequence[tuple[Run, Rows] | None] = [None] * len(views)
    if shown is not None and len(shown.rows) == len(views):
        earlier = [(view.run, rows) for view, rows in zip(shown.diagnosis.views, shown.rows, strict=True)]
    known = () if shown is None else shown.plots
    first = views.index(diagnosis.incidents[0].view) if diagnosis.incidents and diagnosed else 0
    drawn = {first, *(at for at, each in enumerate(known) if each)}
    found = [
        view_of(view.run, wanted if at in drawn else (), known[at] if at < len(known) else {}, earlier[at])
        for at, view in enumerate(views)
    ]
    rows, plots = zip(*found, strict=True)
    return Opened(diagnosis, rows, plots, facts(diagnosis.run), diagnosed, known)


def _grown(view: View, run: Run) -> View:
    """A view with further rows, of which no baseline says anything yet."""
    baselines = {name: baseline.padded(len(run)) for name, baseline in view.baselines.items()}
    return View(view.optimizer, run, baselines)
