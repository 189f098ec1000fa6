"""IMPORTERS: what can be opened. Each is one file that recognises a path and reads it into a Run."""

from __future__ import annotations

from spikeview.importers.errors import RunError
from spikeview.importers.opening import open_run

__all__ = ["RunError", "open_run"]
