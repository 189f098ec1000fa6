"""The few kinds of label the columns are made of."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QLayout, QWidget


def heading(text: str, parent: QWidget) -> QLabel:
    """A section's name, in small capitals."""
    label = QLabel(text.upper(), parent)
    label.setObjectName("heading")
    label.setWordWrap(True)
    label.setAccessibleName(text)
    return label


def muted(text: str, parent: QWidget) -> QLabel:
    """Text of second importance, which wraps."""
    label = QLabel(text, parent)
    label.setObjectName("muted")
    label.setWordWrap(True)
    return label


def placed(grid: QGridLayout, row: int, left: QWidget, right: QWidget) -> None:
    """A row of two, shown at once: left to itself Qt shows them an event later, and the column is measured without."""
    for column, widget in enumerate((left, right)):
        grid.addWidget(widget, row, column, Qt.AlignmentFlag.AlignTop if column == 0 else Qt.AlignmentFlag(0))
        widget.show()


def cleared(layout: QLayout) -> None:
    """Take everything out of a layout and away from the screen."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
