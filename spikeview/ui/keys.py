"""All keys on one page, made from the table of commands."""

from __future__ import annotations

from itertools import groupby

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QWidget

from spikeview.ui.actions import COMMANDS, MOUSE, PANEL_KEYS
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.labels import heading, muted
from spikeview.ui.panels import PANELS

Row = tuple[str, str, str]
COLUMNS = (("File", "Edit", "Go", "Help"), ("View", "Compare", "Mouse"), ("Panels",))


def rows() -> list[Row]:
    """Section, keys, what they do."""
    told = [(each.menu, _native(each.keys), each.text.removesuffix(" …")) for each in COMMANDS if each.text]
    panels = [("Panels", _native((key,)), panel.title) for key, panel in zip(PANEL_KEYS, PANELS, strict=False)]
    return told + panels + [("Mouse", keys, does) for keys, does in MOUSE]


class KeysDialog(QDialog):
    """Does not hold the window up; Esc closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        across = QHBoxLayout(self)
        across.setContentsMargins(22, 16, 22, 18)
        across.setSpacing(scaled(28))
        for sections in COLUMNS:
            across.addLayout(self._column([row for section in sections for row in rows() if row[0] == section]))

    def _column(self, lines: list[Row]) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(5)
        at = 0
        for section, told in groupby(lines, key=lambda line: line[0]):
            grid.addWidget(heading(section, self), at, 0, 1, 2, Qt.AlignmentFlag.AlignBottom)
            grid.setRowMinimumHeight(at, 28)
            at += 1
            for _, keys, does in told:
                key, text = QLabel(keys, self), muted(does, self)
                key.setFont(fixed_font())
                text.setWordWrap(False)
                grid.addWidget(key, at, 0)
                grid.addWidget(text, at, 1)
                at += 1
        grid.setRowStretch(at, 1)
        return grid


def _native(keys: tuple[str, ...]) -> str:
    return "  ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)
