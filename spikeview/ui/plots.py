"""The middle column: every panel, one step axis, the overview."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from spikeview.ui.overview import Overview
from spikeview.ui.panels import PANELS
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.plot.step_axis import StepAxis
from spikeview.ui.session import Session

GAP = 6
MARGIN = 8


class Plots(QWidget):
    """Heights are shared by the panels' weights, and by the handles between them."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("plots")
        self._splitter = splitter = QSplitter(Qt.Orientation.Vertical, self)
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(GAP)
        self.panels = {panel.id: PanelWidget(panel, session, splitter) for panel in PANELS}
        for number, panel in enumerate(PANELS):
            splitter.addWidget(self.panels[panel.id])
            splitter.setStretchFactor(number, panel.weight)
        self.axis, self.overview = StepAxis(session, self), Overview(session, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(GAP, MARGIN, GAP, MARGIN)
        column.setSpacing(0)
        column.addWidget(splitter, 1)
        column.addWidget(self.axis)
        column.addWidget(self.overview)
        session.opened.connect(self._share_height)
        splitter.splitterMoved.connect(self._keep_height)
        self._shared = True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_height()

    def _keep_height(self) -> None:
        """From the first drag of a handle on, the heights are the user's."""
        self._shared = False

    def _share_height(self) -> None:
        """Those without data keep their head; the others share what is left by weight."""
        if not self._shared:
            return
        shown = [self.panels[panel.id] for panel in PANELS]
        heads = sum(widget.maximumHeight() for widget in shown if widget.plotted is None)
        weights = sum(widget.panel.weight for widget in shown if widget.plotted is not None)
        room = self.height() - self.axis.height() - self.overview.height() - GAP * (len(shown) - 1) - heads - 2 * MARGIN
        self._splitter.setSizes(
            [
                widget.maximumHeight() if widget.plotted is None else room * widget.panel.weight // max(1, weights)
                for widget in shown
            ]
        )
