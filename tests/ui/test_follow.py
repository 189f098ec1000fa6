"""A live run is followed: rows as they come, the view where the user left it, a word when an incident begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from recorder.store import RunWriter
from spikeview.ui import opening
from spikeview.ui.window import Window
from tests.ui.conftest import SAMPLES

NOISE = np.random.default_rng(3).normal(size=2000) * 0.01


def row(number: int, loss: float | None = None) -> dict[str, Any]:
    value = 2.0 + NOISE[number] if loss is None else loss
    executed = {"attempted": True, "executed": True, "attempted_n": number + 1, "executed_n": number + 1}
    return {
        "row": number,
        "segment": 0,
        "step": number,
        "optimizer": "optimizer",
        "loss": value,
        "grad_norm": 0.5,
    } | executed


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    made = RunWriter.create(tmp_path / "live", {"device": "cpu"})
    for number in range(200):
        made.append(row(number))
    yield made
    made.close()


@pytest.fixture
def live(window: Window, writer: RunWriter, tmp_path: Path, qtbot: QtBot) -> Window:
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(tmp_path / "live"))
    qtbot.keyClick(window, Qt.Key.Key_F)
    assert window.session.follow.on
    return window


def test_new_rows_are_seen_and_the_end_stays_in_sight(qtbot: QtBot, live: Window, writer: RunWriter) -> None:
    qtbot.keyClick(live, Qt.Key.Key_End)
    for number in range(200, 240):
        writer.append(row(number))
    qtbot.waitUntil(lambda: len(live.session.run) == 240)
    assert live.session.cursor == 239
    assert live.session.range[1] > 239
    loss = live.session.series.of("loss")
    assert len(loss.curves[0]) == 240  # type: ignore[union-attr]


def test_the_view_stays_where_the_user_is_and_an_incident_announces_itself(
    qtbot: QtBot, live: Window, writer: RunWriter
) -> None:
    session = live.session
    session.show_range(20, 60)
    session.inspect_row(41)
    live.header.ask_for_step()
    focused = live.focusWidget()
    with qtbot.waitSignal(session.follow.announced) as told:
        for number in range(200, 230):
            writer.append(row(number, loss=50.0 if number >= 210 else None))
    assert told.args[0] == "New incident at step 210. Press N to go on to it."
    assert told.args[0] in live.foot.text
    assert (session.range, session.cursor, session.incident) == ((20, 60), 40, None)
    assert live.focusWidget() is focused
    live._focus_plots()
    qtbot.keyClick(live, Qt.Key.Key_N)
    assert session.observed == 210


def test_n_is_offered_only_where_it_leads_to_the_new_incident(qtbot: QtBot, live: Window, writer: RunWriter) -> None:
    session, heard = live.session, list[str]()
    session.follow.announced.connect(heard.append)
    for begin in (210, 310):
        for number in range(begin - 10, begin + 90):
            writer.append(row(number, loss=50.0 if begin <= number < begin + 3 else None))
        qtbot.waitUntil(lambda begin=begin: any(f"step {begin}" in each for each in heard))  # type: ignore[misc]
    assert session.incident is None and len(session.incidents) == 2
    assert heard == [
        "New incident at step 210. Press N to go on to it.",
        "New incident at step 310. It is the last of 2.",
    ]


def test_a_long_run_is_drawn_first_and_diagnosed_after(
    qtbot: QtBot, window: Window, writer: RunWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "AT_ONCE", 100)
    for number in range(200, 230):
        writer.append(row(number, loss=50.0 if number >= 210 else None))
    seen = []
    window.session.opened.connect(lambda: seen.append(window.session.shown.diagnosed))  # type: ignore[union-attr]
    window.session.opener.open(str(tmp_path / "live"))
    qtbot.waitUntil(lambda: window.session.opener.task is None)
    assert seen == [False]
    assert window.session.shown is not None and window.session.shown.diagnosed
    assert window.session.observed == 210
    window.session.follow.start()
    for number in range(230, 250):
        writer.append(row(number, loss=50.0))
    qtbot.waitUntil(lambda: len(window.session.run) == 250)
    qtbot.waitUntil(lambda: window.session.shown.diagnosed and window.session.selected.incident.last == 249)  # type: ignore[union-attr]
    assert window.session.observed == 210


def test_an_optimizer_that_comes_late_in_a_long_run_is_shown(
    qtbot: QtBot, live: Window, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "AT_ONCE", 100)
    session = live.session
    for number in range(200, 330):
        writer.append(row(number))
        writer.append(
            row(number) | {"optimizer": "second", "grad_norm": 90.0 if number >= 320 else 0.5 + NOISE[number]}
        )
    qtbot.waitUntil(lambda: len(session.incidents) == 1)
    assert session.shown is not None
    assert [view.optimizer for view in session.shown.diagnosis.views] == ["optimizer", "second"]
    session.select(0)
    assert (session.view.optimizer, session.incidents[0].incident.first_bad.position) == ("second", 120)


@pytest.mark.parametrize(("at_once", "rows"), [(10, 90), (10, 300), (1000, 90)])
def test_another_run_in_the_place_of_the_one_that_is_shown_begins_anew(
    qtbot: QtBot,
    live: Window,
    writer: RunWriter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
    rows: int,
) -> None:
    session = live.session
    for number in range(200, 230):
        writer.append(row(number, loss=50.0 if number >= 210 else None))
    qtbot.waitUntil(lambda: len(session.incidents) == 1)
    session.select(0)
    session.show_range(180, 229)
    monkeypatch.setattr(opening, "AT_ONCE", at_once)
    with closing(RunWriter.create(tmp_path / "other", {})) as other:
        for number in range(rows):
            other.append(row(number, loss=50.0 if number >= rows - 10 else None) | {"time_ns": 1})
    seen: list[list[int]] = []
    for signal in (session.opened, session.grown):
        signal.connect(lambda: seen.append([each.incident.first_bad.position for each in session.incidents]))
    (tmp_path / "live").rename(tmp_path / "gone")
    (tmp_path / "other").rename(tmp_path / "live")
    session.follow.start()
    qtbot.waitUntil(lambda: seen != [] and session.shown is not None and session.shown.diagnosed)
    assert all(incidents in ([], [rows - 10]) for incidents in seen)
    assert (len(session.run), session.observed) == (rows, rows - 10)
    assert f"step {rows - 11}" in live.windowTitle()


def test_what_cannot_be_followed_says_so(qtbot: QtBot, live: Window) -> None:
    qtbot.keyClick(live, Qt.Key.Key_F)
    assert not live.session.follow.on
    assert live.foot.text == "No longer following."


def test_a_run_that_goes_away_ends_the_following_in_one_line(
    qtbot: QtBot, live: Window, writer: RunWriter, tmp_path: Path
) -> None:
    (tmp_path / "live" / "run.json").unlink()
    qtbot.waitUntil(lambda: not live.session.follow.on)
    assert live.foot.text.startswith("No longer following: ")
    assert len(live.session.run) == 200


def test_opening_can_be_cancelled(qtbot: QtBot, window: Window) -> None:
    window.session.opener.open(str(SAMPLES / "update_against_gradient"))
    assert window.notice.back_button.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.session.opener.task is None
    assert window.session.shown is None
    assert "Drop a run directory" in window.notice.text
