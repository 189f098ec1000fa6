"""Dark or light: what Qt is told of it, and whether the system decides."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from spikeview.ui.session import Session
from spikeview.ui.theme import DARK, LIGHT, palette, stylesheet, system_theme


class Appearance(QObject):
    """Keeps a window in the session's theme; `follows_system` until the user chooses one."""

    def __init__(self, session: Session, window: QWidget, follows_system: bool) -> None:
        super().__init__(window)
        self._session, self._window, self._follows_system = session, window, follows_system
        session.theme_changed.connect(self._apply)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_theme)
        self._apply()

    def toggle(self) -> None:
        self._follows_system = False
        self._session.use_theme(LIGHT if self._session.theme == DARK else DARK)

    def _apply(self) -> None:
        QApplication.setPalette(palette(self._session.theme))
        self._window.setStyleSheet(stylesheet(self._session.theme))

    def _on_system_theme(self) -> None:
        if self._follows_system:
            self._session.use_theme(system_theme())
