"""Which batches held a sample: asked by its id, answered in rows to go to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from spikeview.format import count, plural, printable, words
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.samples import Held, batches_with, lists_samples
from spikeview.rules.wording import row_of
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.labels import muted
from spikeview.ui.ranked import RankedRun
from spikeview.ui.session import Session
from spikeview.ui.task import Task, Tell

HEADS = ("rank", "row", "step", "loss", "place in batch", "incident")
MOST = 1000
UNNAMED = "The batch ids of this run do not name samples: record it with those of recorder.data.identified."


def search(sample: str, diagnosis: Diagnosis, tell: Tell) -> list[Held]:
    """The rows of all ranks whose batch held the sample, as a number where it is one, else as a text."""
    run = diagnosis.run
    runs = run.ranks.runs if isinstance(run, RankedRun) else {run.rank: run}
    found = batches_with(int(sample), runs, diagnosis) if sample.isascii() and sample.isdecimal() else []
    return found or batches_with(sample, runs, diagnosis)


def told(held: Held) -> tuple[str, ...]:
    """One row in the columns of HEADS."""
    run, at = held.run, held.position
    incident = "" if held.incident is None else f"{'begins' if held.begins else 'in'} {held.incident}"
    values = (words(run, name, at) for name in ("step", "loss"))
    return (str(run.rank), count(row_of(run, at)), *values, str(held.place), incident)


class SampleDialog(QDialog):
    """Enter searches, and on a row goes to it. Does not hold the window up; Esc closes it."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._task: Task | None = None
        self._found: Sequence[Held] = ()
        self.setWindowTitle("Find a sample")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.field = QLineEdit(self)
        self.field.setPlaceholderText("The id of a sample, then Enter")
        self.field.setAccessibleName("The id of a sample")
        self.field.returnPressed.connect(self._search)
        run = session.run
        self.said = muted("" if lists_samples(run) else UNNAMED, self)
        self.said.setAccessibleName("What was found")
        self.table = QTableWidget(0, len(HEADS), self)
        self.table.setAccessibleName("Rows whose batch held the sample")
        self.table.setHorizontalHeaderLabels(HEADS)
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setFont(fixed_font())
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.activated.connect(self._go)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 14)
        for widget in (self.field, self.said, self.table):
            column.addWidget(widget)
        self.resize(scaled(560), scaled(420))
        session.opened.connect(self.close)

    def _search(self) -> None:
        sample, shown = self.field.text().strip(), self._session.shown
        if not sample or shown is None or not lists_samples(self._session.run):
            return
        if self._task is not None:
            self._task.cancel()
        self.said.setText("Searching …")
        self._task = self._session.work.start(partial(search, sample, shown.diagnosis), self._on_found, self._on_failed)

    def _on_found(self, found: list[Held]) -> None:
        if self.sender() is not self._task:
            return
        self._task, self._found = None, found[:MOST]
        more = f" The first {count(MOST)} are listed." if len(found) > MOST else ""
        self.said.setText(f"In {plural(len(found), 'row')}.{more}" if found else "In no batch of this run.")
        self.table.setRowCount(len(self._found))
        for line, held in enumerate(self._found):
            for at, text in enumerate(told(held)):
                item = QTableWidgetItem(printable(text))
                item.setForeground(self._session.theme["bad" if held.incident is not None else "text"])
                self.table.setItem(line, at, item)
        if found:
            self.table.setCurrentCell(0, 0)
            self.table.setFocus()

    def _on_failed(self, error: Exception) -> None:
        if self.sender() is self._task:
            self._task = None
            self.said.setText(printable(f"The search failed: {error}"))

    def _go(self) -> None:
        """To the row, on the rank that had it."""
        held = self._found[self.table.currentRow()]
        self._session.elsewhere.go_to_row(held.run.rank, row_of(held.run, held.position))
