"""What several ranks saw, and which batches held a sample: found, and gone to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from recorder.store import RunWriter
from spikeview.ui.other_ranks import OtherRanks
from spikeview.ui.samples import UNNAMED, SampleDialog
from spikeview.ui.window import Window
from tests.ui.conftest import SAMPLES

# said by the plugin that stands in for a display, of every dialog
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

ROWS, SPIKE = 200, 150
NOISE = np.random.default_rng(5).normal(size=ROWS) * 0.01


def two_ranks(path: Path) -> Path:
    """The loss of rank 1 leaves at row 150, whose batch held the samples 1500 to 1507 there; rank 0 sees nothing."""
    for rank in (0, 1):
        writer = RunWriter.create(path, {"device": "cpu", "world_size": 2}, rank=rank)
        for row in range(ROWS):
            loss = 40.0 if (rank, row) == (1, SPIKE) else 2.0 + NOISE[row]
            counts = {"attempted": True, "executed": True, "attempted_n": row + 1, "executed_n": row + 1}
            first = row * 10 + 10_000 * (1 - rank)
            batch = f"[{first}-{first + 7}]"
            writer.append({"row": row, "step": row, "optimizer": "a", "loss": loss, "batch_id": batch} | counts)
        writer.close()
    return path


def opened(qtbot: QtBot, window: Window, path: Path) -> Window:
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(path))
    return window


def test_an_incident_of_another_rank_is_told_and_gone_to(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    opened(qtbot, window, two_ranks(tmp_path / "run"))
    assert window.session.run.rank == 0
    assert window.session.incidents == ()
    elsewhere = window.session.elsewhere
    qtbot.waitUntil(lambda: elsewhere.found != ())
    lines = [button for button in window.summary.findChildren(QPushButton) if button.text().startswith("rank ")]
    assert [line.text() for line in lines] == [f"rank 1 · step {SPIKE} loss " + lines[0].text().split("loss ")[1]]
    assert lines[0].isVisible()
    qtbot.mouseClick(lines[0], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.session.run.rank == 1 and window.session.incident == 0)
    assert window.session.observed == SPIKE
    others = window.summary.findChild(OtherRanks)
    qtbot.waitUntil(lambda: not others.isVisible())


def test_the_batches_that_held_a_sample_are_found_and_gone_to(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    opened(qtbot, window, two_ranks(tmp_path / "run"))
    qtbot.keyClick(window, Qt.Key.Key_S)
    dialog = window.findChild(SampleDialog)
    assert dialog is not None
    for sample, found in (("10205", "In 1 row."), ("1503", "In 1 row."), ("7", "In 1 row."), ("999", "In no batch")):
        dialog.field.setText(sample)
        qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda found=found: dialog.said.text().startswith(found))
    dialog.field.setText("10205")
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dialog.table.rowCount() == 1)
    told = [dialog.table.item(0, column).text() for column in (0, 1, 2, 4)]
    assert told == ["0", "20", "20", "5"]
    dialog.table.activated.emit(dialog.table.currentIndex())
    assert window.session.cursor == 20
    dialog.field.setText("1503")
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dialog.table.item(0, 0).text() == "1")
    dialog.table.activated.emit(dialog.table.currentIndex())
    qtbot.waitUntil(lambda: window.session.run.rank == 1 and window.session.cursor == SPIKE)


def test_a_run_whose_batches_name_no_samples_says_so(qtbot: QtBot, window: Window) -> None:
    opened(qtbot, window, SAMPLES / "amp_clock_drift")
    qtbot.keyClick(window, Qt.Key.Key_S)
    dialog = window.findChild(SampleDialog)
    assert dialog is not None
    assert dialog.said.text() == UNNAMED
    dialog.close()
