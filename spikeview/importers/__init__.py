"""What can be opened: IMPORTERS lists one file for each format, which recognises a place and reads it into a Run."""

from __future__ import annotations

from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked
from spikeview.importers.opening import open_run, runs_in

__all__ = ["Asked", "RunError", "open_run", "runs_in"]
