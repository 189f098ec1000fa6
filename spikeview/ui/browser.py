"""The runs of a place as a table to choose from; each line fills when its run has been read and diagnosed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from spikeview.format import plural, printable
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import muted
from spikeview.ui.listing import Listed, Listing, summaries
from spikeview.ui.session import Session
from spikeview.ui.task import Task

HEADS = ("run", "rows", "status or format", "first incident")


class Browser(QWidget):
    """Enter or a double click opens a run."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._task: Task | None = None
        self._listing: Listing | None = None
        self._known: dict[int, Listed] = {}
        self.setObjectName("message")
        self._title, self._hint = (
            QLabel(self),
            muted("Enter or a double click opens a run; Backspace comes back to this list. Esc leaves it.", self),
        )
        self._title.setObjectName("title")
        self.table = QTableWidget(0, len(HEADS), self)
        self.table.setAccessibleName("Runs to choose from")
        self.table.setHorizontalHeaderLabels(HEADS)
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header = self.table.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        self.table.doubleClicked.connect(self.open_current)
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            QShortcut(QKeySequence(key), self.table, self.open_current, context=Qt.ShortcutContext.WidgetShortcut)
        column = QVBoxLayout(self)
        column.setContentsMargins(scaled(40), scaled(28), scaled(40), scaled(20))
        column.setSpacing(scaled(8))
        for widget in (self._title, self._hint, self.table):
            column.addWidget(widget)
        session.status_changed.connect(self._fill)
        session.theme_changed.connect(self._write_all)

    def open_current(self) -> None:
        line = self.table.currentRow()
        if self._listing is not None and line >= 0:
            chosen = self._listing.entries[line]
            self._session.opener.open(chosen.path, chosen.asked)

    def _fill(self) -> None:
        listing = self._session.opener.listing
        if listing is None:
            if self._task is not None:
                self._task.cancel()
                self._task = None
            return
        if listing is not self._listing:
            self._listing, self._known = listing, {}
        elif self._task is not None:
            self.table.setFocus()
            return
        self._title.setText(printable(f"{plural(len(listing.entries), 'run')} in {listing.place}"))
        self.table.setRowCount(len(listing.entries))
        self._write_all()
        self.table.setCurrentCell(0, 0)
        self.table.setFocus()
        rest = tuple(entry for line, entry in enumerate(listing.entries) if line not in self._known)
        if rest:
            work = partial(summaries, replace(listing, entries=rest))
            self._task = self._session.work.start(work, self._on_done, self._on_failed, self._show)

    def _show(self, listed: Listed) -> None:
        if self._listing is not None and listed.entry in self._listing.entries:
            line = self._listing.entries.index(listed.entry)
            self._known[line] = listed
            self._write(line, listed)

    def _write_all(self) -> None:
        for line, entry in enumerate(() if self._listing is None else self._listing.entries):
            self._write(line, self._known.get(line, Listed(entry, "…")))

    def _write(self, line: int, listed: Listed) -> None:
        for column, text in enumerate((listed.entry.name, listed.rows, listed.status, listed.first)):
            item = QTableWidgetItem(printable(text))
            item.setToolTip(printable(text))
            item.setForeground(self._session.theme[listed.role if column == len(HEADS) - 1 else "text"])
            self.table.setItem(line, column, item)

    def _on_done(self, answer: object) -> None:
        self._task = None

    def _on_failed(self, error: Exception) -> None:
        self._task = None
        self._session.told.emit(f"Not all runs were read: {error}")
