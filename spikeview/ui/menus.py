"""The menus: made from the table of commands, the panels, and the runs opened last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu

from spikeview.format import printable
from spikeview.ui.actions import COMMANDS, PANEL_KEYS
from spikeview.ui.panels import PANELS
from spikeview.ui.recent import recent

if TYPE_CHECKING:
    from spikeview.ui.window import Window


class Menus(QObject):
    """`panels` are the actions that show and hide them, by id."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._needs_run: list[QAction] = []
        self.menus: dict[str, QMenu] = {}
        self.panels: dict[str, QAction] = {}
        self._greyed: dict[str, QShortcut] = {}
        for number, command in enumerate(COMMANDS):
            menu = self.menus.get(command.menu) or self._menu(command.menu)
            if not command.text:
                menu.addSeparator()
                continue
            action = self._action(menu, command.text, command.keys)
            action.setData(number)
            action.triggered.connect(self._on_command)
            if command.needs_run:
                self._needs_run.append(action)
        for panel, key in zip(PANELS, PANEL_KEYS, strict=False):
            action = self._action(self.menus["Panels"], panel.title, (key,))
            action.setCheckable(True)
            action.setData(panel.id)
            action.triggered.connect(self._on_panel)
            self.panels[panel.id] = action
            # a greyed action leaves its key to this one, which says why
            self._greyed[panel.id] = QShortcut(QKeySequence(key), window, self._on_greyed, enabled=False)
            self._greyed[panel.id].setObjectName(panel.id)
        self.menus["Panels"].setToolTipsVisible(True)
        self._recent = QMenu("Open recent", window)
        self.menus["File"].insertMenu(self.menus["File"].actions()[2], self._recent)
        self._recent.aboutToShow.connect(self._offer_recent)
        self.show_layout()

    def enable(self, usable: bool) -> None:
        """Grey what needs a run while none is shown."""
        for action in self._needs_run:
            action.setEnabled(usable)

    def show_layout(self) -> None:
        """Tick the panels that are on the screen."""
        for panel_id, action in self.panels.items():
            action.setChecked(panel_id in self._window.plots.arrangement.shown)

    def show_reasons(self) -> None:
        """Grey the panels of which the run has nothing, with the reason."""
        for panel in PANELS:
            reason = self._window.session.rows.reasons[panel.id]
            self.panels[panel.id].setEnabled(not reason)
            self._greyed[panel.id].setEnabled(bool(reason))
            self.panels[panel.id].setToolTip(reason or panel.help)

    def _menu(self, name: str) -> QMenu:
        self.menus[name] = self._window.header.menus.addMenu(name)
        return self.menus[name]

    def _action(self, menu: QMenu, text: str, keys: tuple[str, ...]) -> QAction:
        action = QAction(text, self._window)
        action.setShortcuts([QKeySequence(key) for key in keys])
        menu.addAction(action)
        self._window.addAction(action)
        return action

    def _on_command(self) -> None:
        """A function that held the window would keep it from ever being freed: the action knows its number instead."""
        COMMANDS[self._sender().data()].call(self._window)

    def _on_panel(self, wanted: bool) -> None:
        self._window.plots.show_panel(self._sender().data(), wanted)

    def _on_greyed(self) -> None:
        panel_id, session = self.sender().objectName(), self._window.session
        session.told.emit(f"{self.panels[panel_id].text()}: {session.rows.reasons[panel_id]}.")

    def _offer_recent(self) -> None:
        self._recent.clear()
        for path in recent():
            action = self._recent.addAction(printable(path))
            action.setData(path)
            action.triggered.connect(self._on_recent)
        if self._recent.isEmpty():
            self._recent.addAction("none yet").setEnabled(False)

    def _on_recent(self) -> None:
        self._window.session.opener.open(self._sender().data())

    def _sender(self) -> QAction:
        action = self.sender()
        assert isinstance(action, QAction)
        return action
