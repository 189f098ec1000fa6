"""JSON lines of any trainer: one object a line, whose keys are found by their names or told with `--map`."""

from __future__ import annotations

import json
from typing import Any

from spikeview.importers import blocks_json, tabular
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.run import Run

TRIED = 50


def first_object(source: Source) -> dict[str, Any] | None:
    """The first line of a file that is an object; None where most of the first lines are none."""
    lines = [line for line in source.head.split(b"\n", TRIED)[:TRIED] if line.strip()]
    objects = [found for line in lines if (found := _object(line)) is not None]
    return objects[0] if len(objects) > len(lines) / 2 else None


def declines(source: Source) -> str | None:
    """None for a file of objects, one a line."""
    return None if first_object(source) is not None else "no JSON object a line"


def read(source: Source, asked: Asked) -> Run:
    """One row a line. Raises RunError where no key is a loss or a gradient norm."""
    return tabular.run_of(tabular.Log(source.path, "JSON lines", blocks_json.read(source.path, asked.tell)), asked)


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


JSON_LINES = Importer("JSON lines", declines, read)
