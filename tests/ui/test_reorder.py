"""Panels are put in another order by a drag of their head."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui import layout
from spikeview.ui.insertion import places
from spikeview.ui.layout import Layout
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.test_panels import everything

Show = Callable[[Diagnosis], Window]
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
FIRST = ("loss", "grad_norm", "clocks", "alignment")
HEAD = QPoint(300, 10)


def drag(qtbot: QtBot, widget: PanelWidget, to: PanelWidget, down: int) -> QPoint:
    """Press on the head of one and move to so far below the top of the other; returns where the mouse is."""
    end = QPoint(300, to.mapTo(widget.window(), QPoint(0, down)).y() - widget.mapTo(widget.window(), QPoint(0, 0)).y())
    qtbot.mousePress(widget, LEFT, pos=HEAD)
    for at in (HEAD + QPoint(0, QApplication.startDragDistance() * (1 if end.y() > 0 else -1)), end):
        qtbot.mouseMove(widget, at)
    return end


def test_a_panel_goes_where_its_head_is_dragged_and_is_there_in_the_next_window(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.healthy())
    plots = window.plots
    plots.layout_changed.connect(window.remember_layout)
    loss, clocks = plots.panels["loss"], plots.panels["clocks"]
    end = drag(qtbot, loss, clocks, clocks.height() - 10)
    line = plots._insertion
    assert line.isVisible()
    gap = line.mapTo(plots, QPoint(0, 0)).y()
    assert clocks.mapTo(plots, QPoint(0, 0)).y() + clocks.height() <= gap
    assert gap + line.height() <= plots.panels["alignment"].mapTo(plots, QPoint(0, 0)).y()
    assert loss.cursor().shape() == Qt.CursorShape.ClosedHandCursor
    qtbot.mouseRelease(loss, LEFT, pos=end)
    assert not line.isVisible()
    assert plots.arrangement.visible == ("grad_norm", "clocks", "loss", "alignment")
    assert layout.remembered() == plots.arrangement
    assert loss.y() > clocks.y()
    end = drag(qtbot, loss, plots.panels["grad_norm"], 5)
    qtbot.mouseRelease(loss, LEFT, pos=end)
    assert plots.arrangement.visible == FIRST


@pytest.mark.parametrize("by", ["key", "right click", "hiding"])
def test_a_drag_that_is_given_up_moves_nothing(qtbot: QtBot, show: Show, by: str) -> None:
    window = show(made_runs.healthy())
    plots, loss = window.plots, window.plots.panels["loss"]
    cursor = window.session.cursor
    end = drag(qtbot, loss, plots.panels["clocks"], 100)
    assert plots._insertion.isVisible()
    if by == "key":
        qtbot.keyClick(loss, Qt.Key.Key_Escape)
    elif by == "right click":
        qtbot.mouseClick(loss, RIGHT, pos=end)
    else:
        plots.show_panel("loss", False)
    assert not plots._insertion.isVisible()
    qtbot.mouseMove(loss, end + QPoint(0, 50))
    assert not plots._insertion.isVisible()
    qtbot.mouseRelease(loss, LEFT, pos=end)
    plots.show_panel("loss", True)
    assert plots.arrangement.visible == FIRST
    assert window.session.cursor == cursor
    qtbot.mouseRelease(loss, LEFT, pos=drag(qtbot, loss, plots.panels["clocks"], 5))
    assert plots.arrangement.visible == ("grad_norm", "loss", "clocks", "alignment")


def test_a_click_on_a_head_still_inspects_a_row(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.healthy())
    loss = window.plots.panels["loss"]
    row = loss.row_at(HEAD.toPointF())
    assert window.session.observed != row
    qtbot.mousePress(loss, LEFT, pos=HEAD)
    qtbot.mouseMove(loss, HEAD + QPoint(1, QApplication.startDragDistance() - 1))
    qtbot.mouseRelease(loss, LEFT, pos=HEAD + QPoint(1, QApplication.startDragDistance() - 1))
    assert row in (window.session.cursor, window.session.observed)
    assert window.plots.arrangement.visible == FIRST


def test_a_panel_is_dragged_to_places_out_of_sight(qtbot: QtBot, show: Show) -> None:
    window = show(everything())
    plots = window.plots
    plots.arrange(Layout(shown=frozenset(plots.panels)))
    window.resize(900, 560)
    bar, loss = plots._scroll.verticalScrollBar(), plots.panels["loss"]
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    qtbot.mousePress(loss, LEFT, pos=HEAD)
    while bar.value() < bar.maximum():
        before = bar.value()
        qtbot.mouseMove(loss, loss.mapFrom(plots, QPoint(300, plots._scroll.height() + 40)))
        assert bar.value() > before
    end = loss.mapFrom(plots, QPoint(300, plots._scroll.height() + 40))
    qtbot.mouseRelease(loss, LEFT, pos=end)
    assert plots.arrangement.visible[-1] == "loss"


@given(heights=st.lists(st.integers(20, 300), min_size=1, max_size=9), data=st.data())
def test_the_middle_of_a_panel_is_where_the_dragged_one_passes_it(heights: list[int], data: st.DataObject) -> None:
    tops = [sum(heights[:number]) for number in range(len(heights))]
    boxes = [QRect(0, top, 100, height) for top, height in zip(tops, heights, strict=True)]
    at, y = data.draw(st.integers(0, len(heights) - 1)), data.draw(st.integers(-50, sum(heights) + 50))
    to = at + places(at, y, boxes)
    others = [box.center().y() for number, box in enumerate(boxes) if number != at]
    assert to == sum(middle < y for middle in others)


def test_a_window_is_out_of_sight_before_it_waits_for_its_workers(
    monkeypatch: pytest.MonkeyPatch, window: Window
) -> None:
    seen: list[bool] = []
    close = window.session.close

    def closed() -> None:
        seen.append(window.isVisible())
        close()

    monkeypatch.setattr(window.session, "close", closed)
    window.close()
    assert seen[0] is False
