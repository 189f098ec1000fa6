"""The run directory: written by one process, read by any number, whole after a crash."""

from __future__ import annotations

from recorder.store.errors import StoreError
from recorder.store.lookup import read_step
from recorder.store.reader import StoredRun, is_run, read_run
from recorder.store.writer import RunWriter

__all__ = ["RunWriter", "StoreError", "StoredRun", "is_run", "read_run", "read_step"]
