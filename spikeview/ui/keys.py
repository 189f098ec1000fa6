"""All keys on one page, made from the table of commands."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QWidget

from spikeview.ui.actions import COMMANDS, MOUSE
from spikeview.ui.fonts import fixed_font
from spikeview.ui.labels import heading, muted


def rows() -> list[tuple[str, str, str]]:
    """Section, keys, what they do."""
    native = QKeySequence.SequenceFormat.NativeText
    told = [
        (
            command.menu,
            "  ".join(QKeySequence(key).toString(native) for key in command.keys),
            command.text.removesuffix(" …"),
        )
        for command in COMMANDS
        if command.text
    ]
    return told + [("Mouse", keys, does) for keys, does in MOUSE]


class KeysDialog(QDialog):
    """Does not hold the window up; Esc closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys")
        grid = QGridLayout(self)
        grid.setContentsMargins(22, 16, 22, 18)
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(5)
        section = ""
        for menu, keys, does in rows():
            if menu != section:
                grid.addWidget(heading(menu, self), grid.rowCount(), 0, 1, 2, Qt.AlignmentFlag.AlignBottom)
                grid.setRowMinimumHeight(grid.rowCount() - 1, 28)
                section = menu
            key = QLabel(keys, self)
            key.setFont(fixed_font())
            row = grid.rowCount()
            grid.addWidget(key, row, 0)
            grid.addWidget(muted(does, self), row, 1)
        grid.setColumnMinimumWidth(1, 290)
