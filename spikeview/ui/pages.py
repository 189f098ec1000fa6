"""The three pages of the window: what to open and what is waited for, the run, the list of runs."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget

from spikeview.ui.browser import Browser
from spikeview.ui.inspector import Inspector
from spikeview.ui.notice import Notice
from spikeview.ui.plots import Plots
from spikeview.ui.session import Session
from spikeview.ui.summary import Summary


class Pages(QStackedWidget):
    """The run has three columns: what is said of it, its panels, the transition that is inspected."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        columns = QWidget(parent)  # made in the stack itself, its wrapped labels get their height a turn later
        self.summary, self.plots = Summary(session, columns), Plots(session, columns)
        self.inspector, self.notice = Inspector(session, columns), Notice(session, self)
        self.browser = Browser(session, self)
        row = QHBoxLayout(columns)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.summary)
        row.addWidget(self.plots, 1)
        row.addWidget(self.inspector)
        for page in (self.notice, columns, self.browser):
            self.addWidget(page)

    def turn(self) -> bool:
        """To the page that the session's status calls for; returns whether it is the run's."""
        opener = self._session.opener
        waiting = opener.failure is not None or opener.waiting
        usable = self._session.shown is not None and not waiting and opener.listing is None
        self.setCurrentIndex(1 if usable else 0 if waiting or opener.listing is None else 2)
        return usable
