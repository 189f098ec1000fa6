"""A label whose text has the theme's colours."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLabel, QWidget

from spikeview.ui.session import Session
from spikeview.ui.theme import Theme


class ThemedLabel(QLabel):
    """Its text is written anew where the theme changes; the label stays."""

    def __init__(self, text: Callable[[Theme], str], session: Session, parent: QWidget) -> None:
        super().__init__(text(session.theme), parent)
        self._written, self._session = text, session
        session.theme_changed.connect(self._write)

    def _write(self) -> None:
        self.setText(self._written(self._session.theme))
