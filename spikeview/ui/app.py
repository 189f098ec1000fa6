"""The window as a program, and as a picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QEvent, QEventLoop, QSize
from PySide6.QtWidgets import QApplication

from spikeview.importers import Asked
from spikeview.ui.layout import Layout, remembered
from spikeview.ui.session import Session
from spikeview.ui.theme import THEMES, Theme, system_theme

if TYPE_CHECKING:
    from spikeview.ui.window import Window

ThemeName = Literal["dark", "light"]
SIZE = QSize(1440, 900)
FRAME = QSize(16, 48)  # of a window manager, which is known only once it is drawn


def view(path: str | None, theme: ThemeName | None = None, asked: Asked | None = None) -> int:
    """Open the window on a run, or empty, and stay until it is closed; returns the exit status.

    `asked` is what was asked for of a log: which column is which, which of its runs.
    `theme` None follows the system. The application lives only in here: Qt crashes at exit on what outlives it.
    """
    app = _application(sys.argv[:1])
    window = window_on(path, remembered(), None if theme is None else THEMES[theme], asked)
    window.session.opened.connect(window.remember_run)
    window.plots.layout_changed.connect(window.remember_layout)
    window.resize(SIZE.boundedTo(window.screen().availableSize() - FRAME))
    window.show()
    return app.exec()


def window_on(path: str | None, layout: Layout, theme: Theme | None = None, asked: Asked | None = None) -> Window:
    """A window with the panels of a layout; the run is being read from before there is a window."""
    session = Session(theme or system_theme())
    if path is not None:
        session.series.want(layout.visible)
        session.opener.open(path, asked)
    from spikeview.ui.window import Window  # the rest of what is to be imported

    window = Window(theme, session)
    window.plots.arrange(layout)
    session.status_changed.emit()  # what was told before anybody listened
    return window


def snapshot(
    path: str | None, destination_png: Path | str, theme: ThemeName = "dark", size: tuple[int, int] = (1440, 900)
) -> None:
    """Write a picture of the window on a run, as `view` shows it, without a display.

    Raises ValueError where the run cannot be opened, with what the window says of it, and OSError where the
    picture cannot be written.
    """
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance() or _application(["spikeview"])
    window = window_on(path, Layout(), THEMES[theme])
    window.resize(*size)
    window.show()
    loop = QEventLoop(window)
    window.session.status_changed.connect(loop.quit)
    while window.session.opener.task is not None:
        loop.exec()
    for _ in range(2):  # what the first changes the second lays out
        app.processEvents()
    failure = window.session.opener.failure
    picture = window.grab()
    window.close()
    app.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)
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
