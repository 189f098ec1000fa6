"""Where a report goes: whole or not at all, and never into a run."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

from recorder.store import is_run
from spikeview.report.content import ReportError


def refuse_a_run(destination: Path) -> None:
    """Raises ReportError, one line, for a place within a run directory."""
    try:
        places = destination.resolve().parents
        run = next((place for place in places if is_run(place) and (place / "steps").is_dir()), None)
    except (OSError, ValueError):
        return  # what is no path cannot be written either
    if run is not None:
        raise ReportError(f"{destination} lies within the run {run}, which is left as it is. Choose another place.")


def put(destination: Path, text: str) -> Path:
    """Write beside the destination, then rename: a reader sees the old file or the whole new one.

    Raises ReportError, one line, for a place that cannot be written.
    """
    partial = destination.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with partial.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(destination)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise ReportError(f"Cannot write {destination}: {why}. Choose another place.") from problem
    finally:
        with suppress(OSError, ValueError):
            partial.unlink()
    return destination
