"""The runs opened last, kept in the platform's place for settings."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

from spikeview.importers.elsewhere import is_elsewhere

KEPT = 6


def settings() -> QSettings:
    """The one place of all settings of the window."""
    return QSettings("spikeview", "spikeview")


def recent() -> list[str]:
    """Those that are still there, as far as can be told without asking another machine, the last one first."""
    stored = settings().value("recent", [])
    paths = stored if isinstance(stored, list) else [stored]
    return [str(path) for path in paths if path and (is_elsewhere(path) or Path(str(path)).exists())][:KEPT]


def remember(path: str) -> None:
    """Put a run first."""
    here = path if is_elsewhere(path) else str(Path(path).absolute())
    settings().setValue("recent", [here, *(each for each in recent() if each != here)][:KEPT])
