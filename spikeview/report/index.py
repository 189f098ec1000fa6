"""A folder of runs: one page that lists them, and a report on each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spikeview import __version__
from spikeview.format import printable
from spikeview.importers import RunError
from spikeview.report.content import content
from spikeview.report.destination import placing_folder, refuse
from spikeview.report.errors import ReportError
from spikeview.report.export import FACES, Told, quietly, to_html
from spikeview.report.templating import template_of
from spikeview.report.transition import NEIGHBOURS
from spikeview.rules.diagnosis import Diagnosis

INDEX = "index.html"
LISTED = 10


def write_index(
    runs: Mapping[str, Callable[[], Diagnosis]],
    destination: Path,
    *,
    note: str = "",
    rows: int = NEIGHBOURS,
    replace: bool = True,
    told: Told = quietly,
) -> Path:
    """Write a folder with a page for each run and an index; `runs` gives what diagnoses each, by its name.

    A run that cannot be read is listed with the reason.
    Raises ReportError, one line, for a folder that cannot be written, and for one that exists unless `replace`; then
    files of other names in it stay. Nothing is left of what was begun.
    """
    if destination.suffix.lower() in FACES:
        raise ReportError(
            f"There are {len(runs)} runs, and {destination.name} is one file. Give a folder for their pages and index."
        )
    refuse(destination, replace)
    with placing_folder(destination, replace) as folder:
        told_of, pages = [], {INDEX}
        for at, (name, diagnosed) in enumerate(runs.items(), start=1):
            told(f"run {at} of {len(runs)}: {printable(name)}")
            told_of.append(_listed(name, diagnosed, folder / _page(name, pages), note, rows, told))
        template = template_of("index.html.j2", autoescape=True)
        said = {"runs": told_of, "note": note, "most": LISTED, "spikeview_version": __version__}
        (folder / INDEX).write_text(template.render(said), "utf-8", "backslashreplace")
    return destination


def _listed(
    name: str, diagnosed: Callable[[], Diagnosis], page: Path, note: str, rows: int, told: Told
) -> dict[str, Any]:
    """A line of the index, and the page that it leads to."""
    try:
        diagnosis = diagnosed()
    except RunError as error:
        return {"name": name, "page": None, "problem": str(error)}
    said = content(diagnosis, note=note, rows=rows)
    page.write_text(to_html(diagnosis, said, told), "utf-8", "backslashreplace")
    return {
        "name": name,
        "page": page.name,
        "problem": None,
        "rows": len(diagnosis.run),
        "headline": said["headline"],
        "incidents": [
            {"number": one["number"], "headline": one["headline"], "severity": one["severity"]}
            for one in said["incidents"]
        ],
        "failed": [check["title"] for check in said["checks"]["failed"]],
    }


def _page(name: str, taken: set[str]) -> str:
    """A file name for a run's page that no other has."""
    base = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "run"
    page = next(
        candidate
        for candidate in (f"{base[:80]}{'' if at == 1 else f'-{at}'}.html" for at in range(1, len(taken) + 2))
        if candidate.lower() not in taken
    )
    taken.add(page.lower())
    return page
