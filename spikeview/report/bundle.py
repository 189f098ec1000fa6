"""A bundle: the rows around an incident as a run of their own, the report on it, and what they rest on, in one file."""

from __future__ import annotations

import json
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from recorder.schema import COLUMNS, SCHEMA_VERSION
from recorder.store.lazy_table import in_memory
from recorder.store.whole import write_run
from spikeview import __version__
from spikeview.importers.bundle import MANIFEST, RUN, SCHEMA, VERSION
from spikeview.importers.captures import REPLAY, folders
from spikeview.report.content import content
from spikeview.report.destination import placing, refuse
from spikeview.report.errors import ReportError
from spikeview.report.excerpt import Excerpt, excerpt
from spikeview.report.export import FACES, Told, quietly
from spikeview.report.redaction import redacted
from spikeview.report.series import around
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, diagnose
from spikeview.rules.wording import row_of
from spikeview.run import Run

PACKED = {".parquet", ".safetensors"}
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write_bundle(
    diagnosis: Diagnosis,
    incident: int | None,
    destination: Path,
    *,
    note: str = "",
    redact: bool = False,
    captures: bool = False,
    replace: bool = True,
    told: Told = quietly,
) -> Path:
    """Write the bundle of an incident, counted from 1; None stands for the only one there is.

    With `redact` nothing in it says who ran what where, or on which data; with `captures` it holds the captured
    batches of the rows that the report's figure shows, beside what came of replays. `told` hears what is being done;
    what it raises ends the export. Raises ReportError, one line, for what cannot be bundled and for a place that cannot
    be written. Nothing is left there then.
    """
    if destination.suffix.lower() != ".zip":
        raise ReportError(f"A bundle is a zip file: call {destination.name} something like incident.spikeview.zip.")
    if redact and captures:
        raise ReportError("Captures hold the batches themselves, which --redact takes out. Leave one of the two out.")
    refuse(destination, replace)
    chosen = _one(diagnosis, incident)
    captured = [] if redact else list(_captured(diagnosis.run, chosen, captures))
    with tempfile.TemporaryDirectory(prefix="spikeview-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        if redact:
            told("taking out what is private")
            diagnosis = diagnose(redacted(diagnosis.run, str(folder / "run")))
            chosen = _one(diagnosis, incident)
        told("choosing rows")
        part = excerpt(diagnosis, chosen)
        said = content(diagnosis, incident or 1, note=note)
        with placing(destination, replace) as partial:
            told("writing rows")
            _write_rows(part.run, folder / RUN)
            _write_said(folder / MANIFEST, diagnosis.run, part, redact)
            for suffix in (".html", ".md", ".json"):
                text = FACES[suffix].write(diagnosis, said, told)
                (folder / f"report{suffix}").write_text(text, "utf-8", "backslashreplace")
            told("packing")
            _pack(partial, folder, captured)
    return destination


def _write_rows(run: Run, place: Path) -> None:
    """The rows of a run as a run directory."""
    manifest = {name: value for name, value in run.manifest.items() if name != "schema"}
    table = _with_identity(in_memory(run.table)).replace_schema_metadata(None)
    write_run(place, table, {**manifest, "schema_version": SCHEMA_VERSION}, run.events, run.layers, run.rank)


def _with_identity(table: pa.Table) -> pa.Table:
    """With the columns that every row of a run directory has; a log may lack some."""
    for column in COLUMNS.values():
        if column.phase == "identity" and column.name not in table.column_names:
            table = table.append_column(column.name, pa.array([None] * table.num_rows, column.arrow))
    return table


def _one(diagnosis: Diagnosis, incident: int | None) -> Diagnosed:
    total, name = len(diagnosis.incidents), diagnosis.run.name
    if incident is None and total == 1:
        incident = 1
    if not total:
        raise ReportError(f"{name} has no incident, and a bundle is made of one. Write a report instead.")
    if incident is None:
        raise ReportError(f"{name} has {total} incidents: say which one with --incident N.")
    if not 1 <= incident <= total:
        raise ReportError(f"There is no incident {incident}: {name} has {total}. `spikeview triage` lists them.")
    chosen = diagnosis.incidents[incident - 1]
    if chosen.view.run.rank != diagnosis.run.rank:
        where = chosen.view.run.rank
        raise ReportError(f"Incident {incident} was seen on rank {where}: bundle that one with --rank {where}.")
    return chosen


def _write_said(path: Path, run: Run, part: Excerpt, redact: bool) -> None:
    """What a bundle says of itself."""
    said = {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "spikeview_version": __version__,
        "extent": part.text,
        "incident": part.incident,
        "first_row": part.first_row,
        "last_row": part.last_row,
        "rows": len(part.run),
        "rows_in_run": len(run),
        "rank": run.rank,
        "redacted": redact,
        "notes": list(run.notes),
    }
    path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", "utf-8", "backslashreplace")


def _captured(run: Run, chosen: Diagnosed, whole: bool) -> Iterator[tuple[str, Path]]:
    """The files of the captures around an incident, each with its name in the bundle; not `whole`, their replays."""
    view = chosen.view.run
    start, stop = around(chosen)
    first, last = row_of(view, start), row_of(view, stop - 1)
    home, found = Path(run.path), False
    for row, folder in folders(home, run.rank):
        if not first <= row <= last:
            continue
        for file in sorted(folder.iterdir()):
            kept = file.suffix in (".json", ".safetensors") if whole else file.name == REPLAY
            if kept and file.is_file() and not file.is_symlink():
                found = True
                yield f"{RUN}{file.relative_to(home).as_posix()}", file
    if whole and not found:
        raise ReportError(f"{run.name} holds no capture of rows {first} to {last}. Leave --captures out.")


def _pack(partial: Path, folder: Path, captured: list[tuple[str, Path]]) -> None:
    """The same files give the same bytes, whenever they are packed."""
    files = [(file.relative_to(folder).as_posix(), file) for file in sorted(folder.rglob("*")) if file.is_file()]
    with zipfile.ZipFile(partial, "x") as archive:
        for name, file in [*files, *captured]:
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_STORED if file.suffix in PACKED else zipfile.ZIP_DEFLATED
            entry.file_size = file.stat().st_size
            with file.open("rb") as source, archive.open(entry, "w") as target:
                while block := source.read(2**20):
                    target.write(block)
