"""The window: its parts, which tell each other through the session, and what the commands call."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QPoint
from PySide6.QtGui import QCloseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from spikeview.format import shown
from spikeview.ui import layout, visible
from spikeview.ui.announcing import Announcer
from spikeview.ui.appearance import Appearance
from spikeview.ui.dialogs import Dialogs
from spikeview.ui.drop_target import DropTarget
from spikeview.ui.export_bar import ExportBar
from spikeview.ui.fonts import scaled
from spikeview.ui.foot import Foot
from spikeview.ui.header import Header
from spikeview.ui.keys import KeysDialog
from spikeview.ui.menus import Menus
from spikeview.ui.pages import Pages
from spikeview.ui.plots import Plots
from spikeview.ui.recent import remember
from spikeview.ui.session import Session
from spikeview.ui.theme import Theme, system_theme
from spikeview.ui.values import step_label

FOLDS_BELOW = 1180


class Window(DropTarget):
    """`theme` None follows the system; a `session` may have begun to open a run.

    Qt destroys it once it is closed. Until then it is held here: a collector that destroyed it could do so within
    an event of one of its widgets, and Qt would come back to a widget that is no more.
    """

    _held: ClassVar[set[Window]] = set()

    header: Header
    dialogs: Dialogs
    plots: Plots

    def __init__(self, theme: Theme | None = None, session: Session | None = None) -> None:
        super().__init__()
        Window._held.add(self)
        self.destroyed.connect(lambda: Window._held.discard(self))
        self.setWindowTitle("spikeview")
        self.setMinimumSize(scaled(860), scaled(560))
        self.session = session or Session(theme or system_theme())
        self.session.setParent(self)
        self.dialogs = Dialogs(self.session, self)
        self._appearance = Appearance(self.session, self, follows_system=theme is None)
        self._lay_out()
        self.menus = Menus(self)
        self._announcer = Announcer(self.session, self)
        self._listen()
        self._show_status()

    def _lay_out(self) -> None:
        inside = QWidget(self)
        self.header, self.foot = Header(self.session, inside), Foot(self.session, inside)
        self.export_bar, self.pages = ExportBar(self.session, inside), Pages(self.session, inside)
        self.summary, self.plots, self.inspector = self.pages.summary, self.pages.plots, self.pages.inspector
        self.notice, self.browser = self.pages.notice, self.pages.browser
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.pages, 1)
        column.addWidget(self.export_bar)
        column.addWidget(self.foot)
        self.setCentralWidget(inside)

    def _listen(self) -> None:
        session = self.session
        session.opened.connect(self._on_opened)
        session.grown.connect(self.menus.show_reasons)
        session.status_changed.connect(self._show_status)
        session.cursor_changed.connect(self._title)
        session.follow.announced.connect(self._alert)
        self.header.export_wanted.connect(self.dialogs.choose_report)
        self.export_bar.again_wanted.connect(self.dialogs.choose_report)
        self.header.compare_wanted.connect(self.dialogs.choose_other)
        self.header.step_given.connect(self._focus_plots)
        self.notice.open_button.clicked.connect(self.dialogs.choose_run)
        self.notice.columns_button.clicked.connect(self.dialogs.choose_columns)
        self.summary.columns_wanted.connect(self.dialogs.choose_columns)
        self.plots.layout_changed.connect(self.menus.show_layout)
        self.plots.menu_wanted.connect(self._offer_panels)

    # what the commands call

    def show_keys(self) -> None:
        KeysDialog(self).show()

    def toggle_theme(self) -> None:
        self._appearance.toggle()

    def zoom(self, factor: float) -> None:
        """About the cursor where it is in sight, else about the middle."""
        first, last = self.session.range
        cursor = self.session.inspected
        centre = cursor if first <= cursor <= last else (first + last) / 2
        self.session.show_range(*visible.zoomed((first, last), centre, factor), gesture="keys")

    def remember_run(self) -> None:
        """For a window that a person opened: its runs are offered again."""
        if self.session.opener.path is not None:
            remember(self.session.opener.path)

    def remember_layout(self) -> None:
        """For the same window: its panels come as they were."""
        layout.remember(self.plots.arrangement)

    def back(self) -> None:
        exporting, opener = self.session.exporting, self.session.opener
        if not (self.plots.give_up_drag() or exporting.cancel() or opener.cancel() or exporting.dismiss()):
            opener.dismiss()
        self._focus_plots()

    def quit(self) -> None:
        self.close()

    # what the session and Qt tell

    def _on_opened(self) -> None:
        self.menus.show_reasons()
        self._focus_plots()
        self._title()

    def _show_status(self) -> None:
        self.menus.enable(self.pages.turn())

    def _title(self) -> None:
        run = self.session.run
        where = "start" if self.session.cursor < 0 else f"step {step_label(run, self.session.cursor)}"
        self.setWindowTitle(f"{shown(run.name)} · {where} · spikeview")

    def _offer_panels(self, at: QPoint) -> None:
        self.menus.menus["Panels"].popup(at)

    def _alert(self) -> None:
        """The task bar may flash; the focus stays where it is."""
        QApplication.alert(self)

    def _focus_plots(self) -> None:
        self.plots.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.summary.setVisible(event.size().width() >= scaled(FOLDS_BELOW))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Out of sight at once: the workers may take a moment to end."""
        self.hide()
        self.session.close()
        self.deleteLater()
        event.accept()
