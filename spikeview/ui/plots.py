"""The middle column: the panels of the layout, one step axis, the overview."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSplitter, QVBoxLayout, QWidget

from spikeview.ui.insertion import InsertionLine
from spikeview.ui.layout import Layout
from spikeview.ui.overview import Overview
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.panel import CurvePanel, HeatPanel, Panel
from spikeview.ui.plot.curves_widget import CurvesWidget
from spikeview.ui.plot.heat_widget import HeatWidget
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.plot.step_axis import StepAxis
from spikeview.ui.session import Session

GAP = 6
MARGIN = 8


class Plots(QWidget):
    """Heights go by the panels' weights until a handle between them is dragged; more panels than fit are scrolled."""

    layout_changed = Signal()
    menu_wanted = Signal(QPoint)

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("plots")
        self._session = session
        self.arrangement = Layout()
        self._scroll = QScrollArea(self)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._splitter = QSplitter(Qt.Orientation.Vertical, self._scroll)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(GAP)
        self.panels = {panel.id: _widget(panel, session, self._splitter) for panel in PANELS}
        self.axis, self.overview = StepAxis(session, self), Overview(session, self)
        self._scroll.setWidget(self._splitter)
        self._insertion = InsertionLine(session, self._scroll.viewport())
        column = QVBoxLayout(self)
        column.setContentsMargins(GAP, MARGIN, GAP, MARGIN)
        column.setSpacing(0)
        column.addWidget(self._scroll, 1)
        column.addWidget(self.axis)
        column.addWidget(self.overview)
        for widget in self.panels.values():
            widget.menu_wanted.connect(self._offer)
            widget.head_dragged.connect(self._show_place)
            widget.head_dropped.connect(self._drop)
            widget.drag_given_up.connect(self._insertion.put_away)
        for signal in (session.opened, session.grown):
            signal.connect(self._share_height)
        self._splitter.splitterMoved.connect(self._keep_heights)
        self.arrange(self.arrangement)

    def arrange(self, layout: Layout) -> None:
        """Show the panels of a layout, in its order and heights."""
        changed = layout != self.arrangement
        self.arrangement = layout
        for at, panel_id in enumerate(layout.order):
            widget = self.panels[panel_id]
            if self._splitter.indexOf(widget) != at:
                self._splitter.insertWidget(at, widget)
            widget.setVisible(panel_id in layout.shown)
        self._session.series.want(layout.visible)
        self._share_height()
        if changed:
            self.layout_changed.emit()

    def show_panel(self, panel_id: str, wanted: bool) -> None:
        self.arrange(self.arrangement.showing(panel_id, wanted))

    def move_panel(self, by: int) -> None:
        """Move the panel that has the focus."""
        if (panel_id := self._focused()) is None:
            return
        moved = self.arrangement.moved(panel_id, by)
        if moved == self.arrangement:
            self._session.told.emit(f"This is the {'first' if by < 0 else 'last'} panel.")
        self.arrange(moved)

    def give_up_drag(self) -> bool:
        """Whether a panel was being dragged; it stays where it was."""
        return any(widget.give_up_drag() for widget in self.panels.values())

    def hide_panel(self) -> None:
        """Hide the panel that has the focus."""
        if (panel_id := self._focused()) is not None:
            self.show_panel(panel_id, False)

    def reset(self) -> None:
        """The panels of the first time, in the first order."""
        self.arrange(Layout())

    @property
    def current(self) -> str | None:
        """The panel that has the focus."""
        return next((panel_id for panel_id, widget in self.panels.items() if widget.hasFocus()), None)

    def _focused(self) -> str | None:
        """The panel that has the focus; where none has it that is told."""
        if self.current is None:
            self._session.told.emit("No panel has the focus; click one, or go to it with Tab.")
        return self.current

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_height()

    def _offer(self, panel_id: str, at: QPoint) -> None:
        self.panels[panel_id].setFocus()
        self.menu_wanted.emit(at)

    def _show_place(self, panel_id: str, at: QPoint) -> None:
        """Where a dragged panel would go; those out of sight are scrolled to."""
        self._scroll.ensureVisible(0, self._splitter.mapFromGlobal(at).y(), 0, GAP)
        panels, y = self.arrangement.visible, self._scroll.viewport().mapFromGlobal(at).y()
        self._insertion.point(panels.index(panel_id), y, [self.panels[each] for each in panels])

    def _drop(self, panel_id: str) -> None:
        by = self._insertion.by
        self._insertion.put_away()
        self.arrange(self.arrangement.moved(panel_id, by))

    def _keep_heights(self) -> None:
        """From the drag of a handle on, the heights are the user's."""
        heights = {each: self.panels[each].height() for each in self.arrangement.visible}
        self.arrangement = replace(self.arrangement, heights=heights)
        self.layout_changed.emit()

    def _share_height(self) -> None:
        """Those without data keep their head; the others share what is left, by the user's heights or by weight."""
        shares = {}
        for panel_id in self.arrangement.visible:
            widget = self.panels[panel_id]
            shares[panel_id] = self.arrangement.heights.get(panel_id, widget.panel.weight)
        shown = [self.panels[each] for each in shares]
        heads = sum(widget.maximumHeight() for widget in shown if widget.reason)
        total = sum(share for each, share in shares.items() if not self.panels[each].reason)
        room = max(self._scroll.height(), self._splitter.minimumSizeHint().height()) - GAP * (len(shown) - 1) - heads
        sizes = []
        for panel_id in self.arrangement.order:
            widget = self.panels[panel_id]
            share = room * shares.get(panel_id, 0) // max(1, total)
            sizes.append(0 if panel_id not in shares else widget.maximumHeight() if widget.reason else share)
        self._splitter.setSizes(sizes)


def _widget(panel: Panel, session: Session, parent: QWidget) -> PanelWidget:
    if isinstance(panel, HeatPanel):
        return HeatWidget(panel, session, parent)
    assert isinstance(panel, CurvePanel)
    return CurvesWidget(panel, session, parent)
