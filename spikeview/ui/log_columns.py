"""Which column of a foreign log is taken for what: shown, and to be chosen anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from recorder.schema import COLUMNS, USER_PREFIX
from spikeview.format import label, printable
from spikeview.importers import Asked
from spikeview.importers.naming import NAMES, mapping
from spikeview.meaning import LOG, is_log, meaning
from spikeview.run import Run
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import heading, muted


def taken(run: Run) -> dict[str, str]:
    """Of each column that was read from a log, what the log calls it."""
    said = {name: meaning(run, name) for name in run.table.column_names}
    return {name: each.name for name, each in said.items() if each is not None and each.name}


def names_in(run: Run) -> list[str]:
    """What the log calls its columns, those that were taken first."""
    return [*taken(run).values(), *(name.removeprefix(USER_PREFIX) for name in run.user_columns)]


def told_of_log(run: Run) -> list[tuple[str, str]]:
    """The format of a log, and for every column that was taken its name there and what it holds."""
    if not is_log(run):
        return []
    found = [("format", str(run.manifest[LOG].get("format", "")))]
    for column, name in taken(run).items():
        holds = str(meaning(run, column) or "")
        found.append((label(column), f"{name} ({holds})" if holds else name))
    return found


class LogColumns(QDialog):
    """A line for each column of a run; what is chosen goes over what was guessed. Does not hold the window up."""

    chosen = Signal(object)

    def __init__(self, names: Sequence[str], now: Mapping[str, str], asked: Asked, parent: QWidget) -> None:
        super().__init__(parent)
        self._asked, self._now = asked, dict(now)
        self.setWindowTitle("Columns of the log")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.boxes = {column: self._box(column, names) for column in NAMES}
        grid, inside = QGridLayout(), QWidget(self)
        grid.setVerticalSpacing(5)
        grid.setHorizontalSpacing(scaled(16))
        for at, text in enumerate(("of a run", "in the log")):
            grid.addWidget(heading(text, inside), 0, at)
        for line, (column, box) in enumerate(self.boxes.items(), start=1):
            name = QLabel(label(column), inside)
            name.setToolTip(COLUMNS[column].help)
            grid.addWidget(name, line, 0)
            grid.addWidget(box, line, 1)
        grid.setColumnStretch(1, 1)
        inside.setLayout(grid)
        scrolled = QScrollArea(self)
        scrolled.setWidget(inside)
        scrolled.setWidgetResizable(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel, self)
        buttons.button(QDialogButtonBox.StandardButton.Ok).setText("Read again")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column_box = QVBoxLayout(self)
        column_box.setContentsMargins(18, 14, 18, 14)
        column_box.addWidget(muted("Guessed from their names. What is chosen here is read again.", self))
        column_box.addWidget(scrolled)
        column_box.addWidget(buttons)
        self.resize(scaled(520), scaled(560))

    def accept(self) -> None:
        picked = {column: str(box.currentData()) for column, box in self.boxes.items() if box.currentData()}
        wanted = {column: name for column, name in picked.items() if name != self._now.get(column)}
        self.chosen.emit(replace(self._asked, mapping={**self._asked.mapping, **wanted}))
        super().accept()

    def _box(self, column: str, names: Sequence[str]) -> QComboBox:
        box = QComboBox(self)
        box.setAccessibleName(f"{label(column)} in the log")
        if column not in self._now:
            box.addItem("—", None)
        for name in dict.fromkeys(names):
            box.addItem(printable(name), name)
        box.setCurrentIndex(max(0, box.findData(self._now.get(column))))
        return box


def guessed(names: Sequence[str]) -> dict[str, str]:
    """The columns that names alone tell."""
    return mapping(names, {})
