"""The window: the columns, the menus made from the commands and the panels, and what needs a dialog."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from spikeview.format import shown
from spikeview.ui import visible
from spikeview.ui.actions import COMMANDS
from spikeview.ui.fonts import scaled
from spikeview.ui.foot import Foot
from spikeview.ui.header import Header
from spikeview.ui.inspector import Inspector
from spikeview.ui.keys import KeysDialog
from spikeview.ui.notice import Notice
from spikeview.ui.panels import PANELS
from spikeview.ui.plots import Plots
from spikeview.ui.recent import remember
from spikeview.ui.session import Session
from spikeview.ui.summary import Summary
from spikeview.ui.theme import DARK, LIGHT, Theme, palette, stylesheet, system_theme
from spikeview.ui.values import step_label

FOLDS_BELOW = 1180


class Window(QMainWindow):
    """`theme` None follows the system."""

    session: Session
    header: Header

    def __init__(self, theme: Theme | None = None) -> None:
        super().__init__()
        self.setWindowTitle("spikeview")
        self.setMinimumSize(scaled(860), scaled(560))
        self.setAcceptDrops(True)
        self._follows_system = theme is None
        self.session = Session(theme or system_theme(), self)
        self.session.theme_changed.connect(self._apply_theme)
        self._apply_theme()
        self._lay_out()
        self._needs_run: list[QAction] = []
        self._panel_actions: dict[str, QAction] = {}
        self._make_menus()
        self._listen()
        self._show_status()

    def _lay_out(self) -> None:
        inside = QWidget(self)
        self.header, self.foot = Header(self.session, inside), Foot(self.session, inside)
        self.pages, content = QStackedWidget(inside), QWidget(inside)
        self.summary, self.plots = Summary(self.session, content), Plots(self.session, content)
        self.inspector, self.notice = Inspector(self.session, content), Notice(self.session, self.pages)
        row = QHBoxLayout(content)
        row.addWidget(self.summary)
        row.addWidget(self.plots, 1)
        row.addWidget(self.inspector)
        self.pages.addWidget(self.notice)
        self.pages.addWidget(content)
        column = QVBoxLayout(inside)
        column.addWidget(self.header)
        column.addWidget(self.pages, 1)
        column.addWidget(self.foot)
        for layout in (row, column):
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(0)
        self.setCentralWidget(inside)

    def _listen(self) -> None:
        self.session.opened.connect(self._on_opened)
        self.session.status_changed.connect(self._show_status)
        self.session.cursor_changed.connect(self._title)
        self.header.export_wanted.connect(self.choose_report)
        self.header.step_given.connect(self._focus_plots)
        self.notice.open_button.clicked.connect(self.choose_run)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_theme)

    def _make_menus(self) -> None:
        menus: dict[str, QMenu] = {}
        for number, command in enumerate(COMMANDS):
            menu = menus.get(command.menu) or menus.setdefault(command.menu, self.header.menus.addMenu(command.menu))
            if not command.text:
                menu.addSeparator()
                continue
            action = QAction(command.text, self)
            action.setShortcuts([QKeySequence(key) for key in command.keys])
            action.setData(number)
            action.triggered.connect(self._on_command)
            menu.addAction(action)
            self.addAction(action)
            if command.needs_run:
                self._needs_run.append(action)
        menus["View"].addSeparator()
        for panel in PANELS:
            action = QAction(panel.title, self)
            action.setCheckable(True)
            action.setChecked(True)
            action.setToolTip(panel.help)
            action.toggled.connect(self.plots.panels[panel.id].setVisible)
            menus["View"].addAction(action)
            self._panel_actions[panel.id] = action
        menus["View"].setToolTipsVisible(True)

    # what the commands call

    def choose_run(self) -> None:
        dialog = QFileDialog(self, "Open a run: a directory that holds run.json")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.session.open)
        dialog.open()

    def choose_report(self) -> None:
        if self.session.shown is None:
            return
        dialog = QFileDialog(self, "Export the report")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(["HTML page (*.html)", "Markdown (*.md)"])
        dialog.setDefaultSuffix("html")
        dialog.selectFile(self._report_name())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._on_report_chosen)
        dialog.open()

    def show_keys(self) -> None:
        dialog = KeysDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.show()

    def toggle_theme(self) -> None:
        self._follows_system = False
        self.session.use_theme(LIGHT if self.session.theme == DARK else DARK)

    def zoom(self, factor: float) -> None:
        """About the cursor where it is in sight, else about the middle."""
        first, last = self.session.range
        cursor = self.session.inspected
        centre = cursor if first <= cursor <= last else (first + last) / 2
        self.session.show_range(*visible.zoomed((first, last), centre, factor))

    def remember_run(self) -> None:
        """For a window that a person opened: its runs are offered again."""
        if self.session.shown is not None:
            remember(self.session.shown.diagnosis.run.path)

    def back(self) -> None:
        self.session.dismiss()
        self._focus_plots()

    def quit(self) -> None:
        self.close()

    # what the session and Qt tell

    def _on_command(self) -> None:
        """A function that held this window would keep it from ever being freed: the action knows its number instead."""
        action = self.sender()
        assert isinstance(action, QAction)
        COMMANDS[action.data()].call(self)

    def _on_opened(self) -> None:
        for panel in PANELS:
            missing = panel.missing(self.session.run)
            action = self._panel_actions[panel.id]
            action.setEnabled(not missing)
            action.setToolTip(f"not recorded: {', '.join(missing)}" if missing else panel.help)
        self._focus_plots()
        self._title()

    def _show_status(self) -> None:
        waiting = self.session.failure is not None or self.session.opening is not None
        usable = self.session.shown is not None and not waiting
        self.pages.setCurrentIndex(1 if usable else 0)
        for action in self._needs_run:
            action.setEnabled(usable)

    def _title(self) -> None:
        run = self.session.run
        where = "start" if self.session.cursor < 0 else f"step {step_label(run, self.session.cursor)}"
        self.setWindowTitle(f"{shown(run.name)} · {where} · spikeview")

    def _report_name(self) -> str:
        chosen, run = self.session.selected, self.session.run
        if chosen is None:
            return f"{run.name}.html"
        return f"{run.name}-step-{step_label(run, chosen.incident.first_bad.position).replace(',', '')}.html"

    def _on_report_chosen(self, path: str) -> None:
        self.session.export(Path(path))

    def _focus_plots(self) -> None:
        self.plots.setFocus()

    def _apply_theme(self) -> None:
        QApplication.setPalette(palette(self.session.theme))
        self.setStyleSheet(stylesheet(self.session.theme))

    def _on_system_theme(self) -> None:
        if self._follows_system:
            self.session.use_theme(system_theme())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.summary.setVisible(event.size().width() >= scaled(FOLDS_BELOW))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.session.open(next(url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()))
        event.acceptProposedAction()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.session.close()
        event.accept()
