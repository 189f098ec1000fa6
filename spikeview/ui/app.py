"""The window as a program, and as a picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QEventLoop, QSize
from PySide6.QtWidgets import QApplication

from spikeview.ui.theme import THEMES
from spikeview.ui.window import Window

ThemeName = Literal["dark", "light"]
SIZE = QSize(1440, 900)
FRAME = QSize(16, 48)  # of a window manager, which is known only once it is drawn


def view(path: str | None, theme: ThemeName | None = None) -> int:
    """Open the window on a run, or empty, and stay until it is closed; returns the exit status.

    `theme` None follows the system. The application lives only in here: Qt crashes at exit on what outlives it.
    """
    app = _application(sys.argv[:1])
    window = Window(None if theme is None else THEMES[theme])
    window.session.opened.connect(window.remember_run)
    window.resize(SIZE.boundedTo(window.screen().availableSize() - FRAME))
    if path is not None:
        window.session.open(path)
    window.show()
    return app.exec()


def snapshot(
    path: str | None, destination_png: Path | str, theme: ThemeName = "dark", size: tuple[int, int] = (1440, 900)
) -> None:
    """Write a picture of the window on a run, as `view` shows it, without a display.

    Raises ValueError where the run cannot be opened, with what the window says of it, and OSError where the
    picture cannot be written.
    """
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance() or _application(["spikeview"])
    window = Window(THEMES[theme])
    window.resize(*size)
    window.show()
    if path is not None:
        loop = QEventLoop(window)
        window.session.status_changed.connect(loop.quit)
        window.session.open(path)
        while window.session.opening is not None:
            loop.exec()
    app.processEvents()
    failure = window.session.failure
    picture = window.grab()
    window.close()
    if failure is not None:
        raise ValueError(f"{failure.title}: {failure.reason}")
    if not picture.save(str(destination_png), "PNG"):
        raise OSError(f"cannot write {destination_png}")


def _application(arguments: list[str]) -> QApplication:
    app = QApplication(arguments)
    app.setApplicationName("spikeview")
    app.setApplicationDisplayName("")
    app.setStyle("Fusion")
    return app
