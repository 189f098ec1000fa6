"""Runs in an object store or on another machine, by their URL."""

from __future__ import annotations

from spikeview.importers.elsewhere.reading import read_elsewhere
from spikeview.importers.elsewhere.system import is_elsewhere

__all__ = ["is_elsewhere", "read_elsewhere"]
