"""Writing a report to a file: by its suffix, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spikeview.format import sentence, shown
from spikeview.report.content import ReportError, content
from spikeview.report.destination import put, refuse_a_run
from spikeview.report.markdown import code, prose
from spikeview.report.own_settings import settings_of_its_own
from spikeview.report.series import around
from spikeview.rules.diagnosis import Diagnosis

TEMPLATES = Path(__file__).parent / "templates"
DRAWN = 10
LONGEST_PARAGRAPH = 4000

Told = Callable[[str], None]


def quietly(text: str) -> None:
    """Where nobody waits for the report, nobody hears of its progress."""


def write_report(diagnosis: Diagnosis, incident: int | None, destination: Path) -> Path:
    """Write the report on one incident (counted from 1) or, with None, on all of them; the suffix decides the format.

    An existing file is replaced only when the new one is complete. Raises ReportError as `render` and `put` do.
    """
    return put(destination, render(diagnosis, incident, destination))


def render(diagnosis: Diagnosis, incident: int | None, destination: Path, told: Told = quietly) -> str:
    """The text of a report in the format of the destination's suffix; `told` hears what is being done.

    Raises ReportError, one line, for a destination that cannot be one: a suffix other than .html, .md and .json, a
    place within a run; for an incident the run does not have, and for a missing library.
    """
    face = FACES.get(destination.suffix.lower())
    if face is None:
        was = f"not {destination.suffix}" if destination.suffix else "and it has none"
        raise ReportError(
            f"Cannot tell the report's format from {destination.name}: its suffix must be .html, .md or .json, {was}."
        )
    refuse_a_run(destination)
    return face(diagnosis, incident, told)


def to_html(diagnosis: Diagnosis, incident: int | None, told: Told) -> str:
    """One self-contained page: no script, nothing fetched, figures drawn in place."""
    said = content(diagnosis, incident)
    template = _template("report.html.j2", autoescape=True)
    return str(template.render(said, figures=_figures(diagnosis, said, told), most_drawn=DRAWN))


def to_markdown(diagnosis: Diagnosis, incident: int | None, told: Told) -> str:
    """Text to paste into an issue tracker: one file, so its figures are lines of text."""
    return str(_template("report.md.j2", autoescape=False).render(content(diagnosis, incident)))


def to_json(diagnosis: Diagnosis, incident: int | None, told: Told) -> str:
    """The content itself."""
    return json.dumps(content(diagnosis, incident), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


FACES = {".html": to_html, ".htm": to_html, ".md": to_markdown, ".json": to_json}


def _figures(diagnosis: Diagnosis, said: dict[str, Any], told: Told) -> dict[str, Any]:
    """SVG by incident number, of the DRAWN most severe; and the whole run, of each optimizer that has an incident."""
    try:
        with settings_of_its_own():
            from spikeview.report import figures
    except ImportError as missing:
        raise _not_installed(missing) from missing
    except OSError as problem:
        raise ReportError(f"No figure can be drawn: {problem.strerror or problem}. Write .md instead.") from problem
    chosen = {one["number"]: diagnosis.incidents[one["number"] - 1] for one in said["incidents"]}
    views = {one.view.optimizer: one.view for one in chosen.values()} or {
        view.optimizer: view for view in diagnosis.views
    }
    only = next(iter(chosen.values())) if len(chosen) == 1 else None
    seen = only is not None and around(only) == (0, len(only.view.run))
    severe = sorted(chosen, key=lambda number: chosen[number].incident.severity != "critical")[:DRAWN]
    drawn: dict[str, dict[Any, str]] = {"incident": {}, "run": {}}
    for at, number in enumerate(sorted(severe), start=1):
        told(f"drawing figure {at} of {len(severe)}")
        drawn["incident"][number] = figures.around_incident(chosen[number], f"i{number}")
    for at, (name, view) in enumerate(() if seen else views.items()):
        told("drawing the whole run")
        drawn["run"][name] = figures.whole_run(diagnosis, view, f"r{at}", only)
    return drawn


def _template(name: str, autoescape: bool) -> Any:
    try:
        import jinja2
    except ImportError as missing:
        raise _not_installed(missing) from missing
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
    )
    environment.filters.update(prose=prose, code=code, sentence=sentence)
    return environment.get_template(name)


def _not_installed(missing: ImportError) -> ReportError:
    return ReportError(
        f'This report needs {missing.name or "a library"}, which is not installed: pip install "spikeview[report]"'
    )


def _visible(value: Any) -> Any:
    """Whatever a template shows of a run acts on nobody's screen, and is not without end."""
    return shown(value, LONGEST_PARAGRAPH) if type(value) is str else value
