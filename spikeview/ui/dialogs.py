"""What needs a dialog: which run, which log, which other run, and where the report goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from spikeview.importers import Asked
from spikeview.meaning import is_log
from spikeview.ui.exporting import folder
from spikeview.ui.log_columns import LogColumns, guessed, names_in, taken
from spikeview.ui.samples import SampleDialog
from spikeview.ui.session import Session
from spikeview.ui.values import step_label

SUFFIXES = {"HTML page (*.html)": "html", "Markdown (*.md)": "md", "JSON (*.json)": "json"}


class Dialogs(QObject):
    """None of them holds the window up."""

    def __init__(self, session: Session, window: QWidget) -> None:
        super().__init__(window)
        self._session, self._window = session, window

    def choose_run(self) -> None:
        self._directory("Open a run, or a directory of runs", self._session.opener.open)

    def choose_log(self) -> None:
        self._opened(QFileDialog(self._window, "Open a log of another trainer"), self._session.opener.open)

    def choose_columns(self) -> None:
        """Of the log that is shown, or of one whose columns nobody could guess."""
        opener, shown = self._session.opener, self._session.shown
        if opener.unnamed:
            dialog = LogColumns(opener.unnamed, guessed(opener.unnamed), opener.asked, self._window)
        elif shown is not None and is_log(run := shown.diagnosis.run):
            dialog = LogColumns(names_in(run), taken(run), opener.asked, self._window)
        else:
            self._session.told.emit("This run was recorded: nothing of its columns is guessed.")
            return
        dialog.chosen.connect(self._on_columns_chosen)
        dialog.show()

    def find_sample(self) -> None:
        if self._session.shown is not None:
            SampleDialog(self._session, self._window).show()

    def choose_other(self) -> None:
        if self._session.shown is not None:
            self._directory("Compare with a run", self._session.comparison.open)

    def choose_report(self) -> None:
        if self._session.shown is None:
            return
        dialog = QFileDialog(self._window, "Export the report", folder())
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(SUFFIXES))
        dialog.setDefaultSuffix("html")
        dialog.selectFile(self._report_name())
        dialog.filterSelected.connect(self._on_filter)
        self._opened(dialog, self._on_report_chosen)

    def _directory(self, title: str, chosen: Callable[[str], None]) -> None:
        dialog = QFileDialog(self._window, title)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        self._opened(dialog, chosen)

    def _opened(self, dialog: QFileDialog, chosen: Callable[[str], None]) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(chosen)
        dialog.open()

    def _report_name(self) -> str:
        chosen, run = self._session.selected, self._session.run
        if chosen is None:
            return f"{run.name}.html"
        return f"{run.name}-step-{step_label(run, chosen.incident.first_bad.position).replace(',', '')}.html"

    def _on_columns_chosen(self, asked: Asked) -> None:
        opener = self._session.opener
        if opener.path is not None:
            opener.open(opener.path, asked)

    def _on_filter(self, chosen: str) -> None:
        """The suffix goes with the format."""
        dialog = self.sender()
        assert isinstance(dialog, QFileDialog)
        dialog.setDefaultSuffix(SUFFIXES[chosen])
        now = Path(dialog.selectedFiles()[0])
        if now.suffix.lstrip(".") in SUFFIXES.values():
            dialog.selectFile(now.with_suffix(f".{SUFFIXES[chosen]}").name)

    def _on_report_chosen(self, path: str) -> None:
        self._session.exporting.write(Path(path))
