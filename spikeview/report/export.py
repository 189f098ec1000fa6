"""Writing a report to a file: by its suffix, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from spikeview.format import plain
from spikeview.report.content import MOST, content, severest
from spikeview.report.destination import put, refuse
from spikeview.report.errors import ReportError
from spikeview.report.own_settings import settings_of_its_own
from spikeview.report.series import around
from spikeview.report.templating import not_installed, template_of
from spikeview.report.transition import NEIGHBOURS
from spikeview.rules.diagnosis import Diagnosis

DRAWN = 10

Told: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Face:
    """How the content is written in one format, and how many incidents it tells of in full where all are asked for."""

    write: Callable[[Diagnosis, dict[str, Any], Told], str]
    most: int


def quietly(text: str) -> None:
    """Where nobody waits for the report, nobody hears of its progress."""


def write_report(
    diagnosis: Diagnosis,
    incident: int | Sequence[int] | None,
    destination: Path,
    *,
    note: str = "",
    rows: int = NEIGHBOURS,
    replace: bool = True,
    told: Told = quietly,
) -> Path:
    """Write the report on one incident or several (counted from 1), or on all of them; the suffix decides the format.

    An existing file is replaced only when the new one is complete, and not at all unless `replace`. `told` hears what
    is being done; what it raises ends the export, and nothing is written. Raises ReportError as `render` and `put` do.
    """
    refuse(destination, replace)
    text = render(diagnosis, incident, destination, told, note=note, rows=rows)
    told("writing")
    return put(destination, text, replace)


def render(
    diagnosis: Diagnosis,
    incident: int | Sequence[int] | None,
    destination: Path,
    told: Told = quietly,
    *,
    note: str = "",
    rows: int = NEIGHBOURS,
) -> str:
    """The text of a report in the format of the destination's suffix; the rest as in `write_report`.

    Raises ReportError, one line, for a suffix other than .html, .md and .json, for a place within a run, for an
    incident the run does not have, and for a missing library.
    """
    face = face_of(destination)
    refuse(destination)
    told("putting it into words")
    return face.write(diagnosis, content(diagnosis, incident, note=note, rows=rows, most=face.most), told)


def face_of(destination: Path) -> Face:
    """What writes a report in the format of a file's suffix. Raises ReportError where there is none."""
    face = FACES.get(destination.suffix.lower())
    if face is not None:
        return face
    was = f"not {destination.suffix}." if destination.suffix else "and it has none."
    paper = " For a PDF, print the .html from a browser." if destination.suffix.lower() == ".pdf" else ""
    must = f"its suffix must be .html, .md or .json, {was}{paper}"
    raise ReportError(f"Cannot tell the report's format from {destination.name}: {must}")


def to_html(diagnosis: Diagnosis, said: dict[str, Any], told: Told) -> str:
    """One self-contained page: no script, nothing fetched, figures drawn in place."""
    template = template_of("report.html.j2", autoescape=True)
    return str(template.render(said, figures=_figures(diagnosis, said, told), most_drawn=DRAWN))


def to_markdown(diagnosis: Diagnosis, said: dict[str, Any], told: Told) -> str:
    """Text to paste into an issue tracker: one file, so its figures are lines of text."""
    return str(template_of("report.md.j2", autoescape=False).render(said))


def to_json(diagnosis: Diagnosis, said: dict[str, Any], told: Told) -> str:
    """The content itself."""
    return json.dumps(plain(said), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# An issue tracker takes some 65,000 characters, and an incident in words is up to 10,000 of them.
PAGE = Face(to_html, MOST)
FACES = {".html": PAGE, ".htm": PAGE, ".md": Face(to_markdown, 3), ".json": Face(to_json, MOST)}


def _figures(diagnosis: Diagnosis, said: dict[str, Any], told: Told) -> dict[str, Any]:
    """SVG by incident number, of the DRAWN most severe; and the whole run, of each optimizer that has an incident."""
    try:
        with settings_of_its_own():
            from spikeview.report import figures
    except ImportError as missing:
        raise not_installed(missing) from missing
    except OSError as problem:
        raise ReportError(f"No figure can be drawn: {problem.strerror or problem}. Write .md instead.") from problem
    chosen = {one["number"]: diagnosis.incidents[one["number"] - 1] for one in said["incidents"]}
    views = {figures.which(one.view): one.view for one in chosen.values()}
    views = views or {figures.which(view): view for view in diagnosis.views}
    only = next(iter(chosen.values())) if len(chosen) == 1 else None
    seen = only is not None and around(only) == (0, len(only.view.run))
    severe = severest(diagnosis, list(chosen), DRAWN)
    drawn: dict[str, dict[Any, str]] = {"incident": {}, "run": {}}
    for at, number in enumerate(severe, start=1):
        told(f"drawing figure {at} of {len(severe)}")
        drawn["incident"][number] = figures.around_incident(chosen[number], f"i{number}")
    for at, ((optimizer, rank), view) in enumerate(() if seen else list(views.items())[:DRAWN]):
        told("drawing the whole run")
        name = f"{optimizer}, rank {rank}" if len(diagnosis.ranks) > 1 else optimizer
        drawn["run"][name] = figures.whole_run(diagnosis, view, f"r{at}", only)
    return drawn
