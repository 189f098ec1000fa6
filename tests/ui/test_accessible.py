"""What a screen reader finds in the window, and what it is told of by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QProgressBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui.keys import KeysDialog
from spikeview.ui.log_columns import LogColumns
from spikeview.ui.painted import Painted
from spikeview.ui.plot.panel_head import PanelHead
from spikeview.ui.window import Window
from tests.ui import made_runs

# said by the plugin that stands in for a display, of every dialog
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

Show = Callable[[Diagnosis], Window]
CONTROLS = (QAbstractButton, QAbstractItemView, QComboBox, QLineEdit, QProgressBar, Painted)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is announced to a screen reader that listens."""
    heard: list[str] = []

    def hear(event: object) -> None:
        if isinstance(event, QAccessibleAnnouncementEvent):
            heard.append(event.message())

    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QAccessible, "updateAccessibility", hear)
    return heard


def nameless(top: QWidget) -> list[QWidget]:
    """The controls within a widget that a screen reader has no word for."""
    inside = [each for kind in CONTROLS for each in top.findChildren(kind)]
    return [each for each in inside if not is_part(each) and not name_of(each)]


def is_part(widget: QWidget) -> bool:
    """What belongs to a control, and is named by it."""
    qt_own = widget.objectName().startswith("qt_") or widget.metaObject().className() == "QComboBoxListView"
    return qt_own or isinstance(widget, (PanelHead, QHeaderView))


def name_of(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name) if interface is not None else widget.accessibleName()


def test_every_control_has_a_name_with_a_run_and_without(show: Show, window: Window) -> None:
    assert nameless(window) == []
    shown = show(made_runs.drawn(2_000))
    assert nameless(shown) == []
    for dialog in (KeysDialog(shown), LogColumns(["a", "b"], {}, shown.session.opener.asked, shown)):
        assert nameless(dialog) == []
        dialog.close()


def test_the_cursor_and_the_incident_are_announced(qtbot: QtBot, show: Show, said: list[str]) -> None:
    window = show(made_runs.drawn())
    said.clear()
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert said[0].startswith("Incident 2 of 3: step 8,219 transient, 49 rows, first cosine")
    assert said[1].startswith("step 8,219, leads to loss ") and "first bad: cosine -0.3800" in said[1]
    said.clear()
    qtbot.keyClick(window, Qt.Key.Key_Left)
    assert len(said) == 1 and said[0].startswith("step 8,218, leads to loss ")
    window.session.to_end(first=False)
    assert said[-1] == "step 12,479, the recording ends here"
    qtbot.keyClick(window, Qt.Key.Key_N)
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert "This is the last incident." in said


def test_nothing_is_worked_out_where_nobody_listens(
    qtbot: QtBot, show: Show, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QAccessible, "isActive", lambda: False)
    window = show(made_runs.drawn(2_000))
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert said == []
