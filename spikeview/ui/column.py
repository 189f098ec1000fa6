"""A column of text of a fixed width that scrolls where it is higher than the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from spikeview.ui.fonts import scaled


class Column(QScrollArea):
    """Its widgets go into `inside` and `stack`."""

    def __init__(self, name: str, width: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setFixedWidth(scaled(width))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.inside = QWidget(self)
        self.stack = QVBoxLayout(self.inside)
        self.stack.setContentsMargins(12, 14, 12, 12)
        self.setWidget(self.inside)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Text that wraps needs more height in less width, which a scroll area does not ask for by itself."""
        if watched is self.widget() and event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self.inside.setMinimumHeight(self.stack.totalHeightForWidth(self.viewport().width()))
        return super().eventFilter(watched, event)
