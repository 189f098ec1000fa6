"""Writing a report to a file: by its suffix, whole or not at all."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from spikeview.format import sentence
from spikeview.report.content import ReportError, content
from spikeview.report.markdown import code, prose
from spikeview.report.series import around
from spikeview.rules.diagnosis import Diagnosis

TEMPLATES = Path(__file__).parent / "templates"


def write_report(diagnosis: Diagnosis, incident: int | None, destination: Path) -> Path:
    """Write the report on one incident (counted from 1) or, with None, on all of them; the suffix decides the format.

    An existing file is replaced only when the new one is complete. Raises ReportError, one line, for a suffix other
    than .html, .md and .json, an incident the run does not have, a missing library, and a place that cannot be written.
    """
    destination = Path(destination)
    face = FACES.get(destination.suffix.lower())
    if face is None:
        was = f"not {destination.suffix}" if destination.suffix else "and it has none"
        raise ReportError(
            f"Cannot tell the report's format from {destination.name}: its suffix must be .html, .md or .json, {was}."
        )
    text = face(diagnosis, incident)
    _replace(destination, text)
    return destination


def to_html(diagnosis: Diagnosis, incident: int | None) -> str:
    """One self-contained page: no script, nothing fetched, figures drawn in place."""
    told = content(diagnosis, incident)
    template = _template("report.html.j2", autoescape=True)
    return str(template.render(told, figures=_figures(diagnosis, told)))


def to_markdown(diagnosis: Diagnosis, incident: int | None) -> str:
    """Text to paste into an issue tracker: one file, so its figures are lines of text."""
    told = content(diagnosis, incident)
    return str(_template("report.md.j2", autoescape=False).render(told))


def to_json(diagnosis: Diagnosis, incident: int | None) -> str:
    """The content itself."""
    return json.dumps(content(diagnosis, incident), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


FACES = {".html": to_html, ".htm": to_html, ".md": to_markdown, ".json": to_json}


def _figures(diagnosis: Diagnosis, told: dict[str, Any]) -> dict[str, Any]:
    """SVG by incident number, and the whole run: of each optimizer where there is no incident to choose by."""
    try:
        from spikeview.report import figures

        numbers = [one["number"] for one in told["incidents"]]
        chosen = {number: diagnosis.incidents[number - 1] for number in numbers}
        views = {one.view.optimizer: one.view for one in chosen.values()} or {
            view.optimizer: view for view in diagnosis.views
        }
        only = chosen[numbers[0]] if len(numbers) == 1 else None
        seen = only is not None and around(only) == (0, len(only.view.run))
        return {
            "incident": {number: figures.around_incident(one, f"i{number}") for number, one in chosen.items()},
            "run": {}
            if seen
            else {
                name: figures.whole_run(diagnosis, view, f"r{at}", only)
                for at, (name, view) in enumerate(views.items())
            },
        }
    except ImportError as missing:
        raise _not_installed(missing) from missing


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
    )
    environment.filters.update(prose=prose, code=code, sentence=sentence)
    return environment.get_template(name)


def _not_installed(missing: ImportError) -> ReportError:
    return ReportError(
        f'This report needs {missing.name or "a library"}, which is not installed: pip install "spikeview[report]"'
    )


def _replace(destination: Path, text: str) -> None:
    """Write beside the destination, then rename: a reader sees the old file or the whole new one."""
    partial = destination.with_name(f".{destination.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(destination)
    except OSError as problem:
        raise ReportError(
            f"Cannot write {destination}: {problem.strerror or problem}. Choose another place."
        ) from problem
    finally:
        partial.unlink(missing_ok=True)
