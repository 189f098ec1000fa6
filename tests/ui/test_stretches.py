"""A long run is drawn before its columns are held: every curve, mark and cell is the one that they would give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pytestqt.qtbot import QtBot

from recorder.schema import COLUMNS, STEPS
from recorder.store import lazy_table
from recorder.store.folder import part_path
from recorder.store.lazy_table import STRETCH
from recorder.store.parts import Part, read_part, write_part
from spikeview.analysis.envelope import envelope
from spikeview.analysis.pyramid import Pyramid
from spikeview.cells import Kind
from spikeview.importers import Asked, RunError, open_run
from spikeview.run import Run
from spikeview.ui.incidents import IncidentList
from spikeview.ui.opened import Opened, Rows
from spikeview.ui.opening import opened, prepare, refreshed, undiagnosed
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.behind import PIECE
from spikeview.ui.panels.plotted import Curves, Drawing, Plotted, hold, plotted
from spikeview.ui.stretches import LONG, found_in, is_long
from spikeview.ui.window import Window

LAST = 4 * STRETCH
ROWS = LAST + 40_000
ENDS = (70_001, 130_000, ROWS)  # of the parts: none ends with a block, and one goes over the end of a stretch
NEWER = {"loss_scale": 70_001}  # a column that later parts have


def columns(rows: int) -> dict[str, pa.Array]:
    """Every kind of cell in every column that is drawn, seldom enough that most stretches of a curve have none."""
    random = np.random.default_rng(7)
    executed = np.ones(rows, dtype=bool)
    executed[[5, 6, 70_000, 70_001, LAST - 1, LAST, rows - 1]] = False
    segment = np.zeros(rows, dtype=np.int32)
    segment[90_000:] += 1
    segment[LAST:] += 1

    def drawn(scale: float, applies: np.ndarray[Any, Any] | None = None) -> pa.Array:
        values = scale * np.exp(random.normal(size=rows))
        for value in (np.nan, np.inf, -np.inf, 0.0, -scale, 1e6 * scale):
            values[random.integers(0, rows, 3)] = value
        lacking = np.zeros(rows, dtype=bool)
        lacking[random.integers(0, rows, 4)] = True
        return pa.array(values, mask=lacking if applies is None else lacking | ~applies)

    attempts = np.arange(1, rows + 1)
    return {
        "row": pa.array(np.arange(rows)),
        "segment": pa.array(segment),
        "step": pa.array(np.arange(rows)),
        "micro_step": pa.array(np.zeros(rows, dtype=np.int32)),
        "optimizer": pa.array(["adam"] * rows),
        "time_ns": pa.array(attempts * 1_000_000),
        "loss": drawn(2.0),
        "grad_norm": drawn(0.5),
        "max_norm": pa.array(np.ones(rows)),
        "clip_coef": drawn(0.5, executed),
        "loss_scale": drawn(1024.0),
        "attempted": pa.array(np.ones(rows, dtype=bool)),
        "executed": pa.array(executed),
        "moved": pa.array(executed, mask=~executed),
        "attempted_n": pa.array(attempts),
        "executed_n": pa.array(np.cumsum(executed)),
        "scheduled_n": pa.array(attempts, mask=attempts % 50_000 == 0),
        "lr": pa.array(np.linspace(1e-3, 1e-5, rows)),
        "update_ratio": drawn(1e-3, executed),
        "update_cosine": drawn(0.1, executed),
    }


def recorded(path: Path, ends: tuple[int, ...] = ENDS) -> Path:
    """A run of parts that end there."""
    known = columns(ROWS)
    folder = path / "steps" / "rank=0"
    folder.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"schema_version": 1}))
    (path / "events.jsonl").write_text("")
    for number, last in enumerate(ends):
        first = ends[number - 1] if number else 0
        names = [name for name in known if NEWER.get(name, 0) <= first]
        table = pa.table({name: known[name].cast(COLUMNS[name].arrow).slice(first, last - first) for name in names})
        write_part(part_path(folder, number), table, np.zeros(0, dtype=np.int64))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("long") / "run")


def lazily(place: Path) -> Run:
    run = open_run(place, asked=Asked(lazily=True))
    assert is_long(run)
    return run


def drawn_of(run: Run) -> dict[str, Plotted | None]:
    return found_in(run, Drawing.of(PANELS, run, {}).job(0))


def pyramids(made: Plotted | None) -> list[Pyramid]:
    assert isinstance(made, Curves)
    return [each for each in (*made.curves, made.limit, made.strip) if each is not None]


def assert_alike(some: Mapping[str, Plotted | None], others: Mapping[str, Plotted | None]) -> None:
    assert {name for name, made in some.items() if made is None} == {
        name for name, made in others.items() if made is None
    }
    for name, made in some.items():
        theirs = others[name]
        if not isinstance(made, Curves) or not isinstance(theirs, Curves):
            continue
        assert (made.log, made.seen, len(made.curves)) == (theirs.log, theirs.seen, len(theirs.curves)), name
        for one, other in zip(pyramids(made), pyramids(theirs), strict=True):
            np.testing.assert_array_equal(one.values[:], other.values[:], err_msg=name)
            np.testing.assert_array_equal(one.kinds[:], other.kinds[:], err_msg=name)
            for level in ("small", "large"):
                for part in ("low", "high", "flags"):
                    ours, them = getattr(getattr(one, level), part), getattr(getattr(other, level), part)
                    np.testing.assert_array_equal(ours, them, err_msg=f"{name} {level} {part}")


def test_the_curves_are_those_of_the_columns(place: Path) -> None:
    run, whole = lazily(place), open_run(place)
    made = drawn_of(run)
    assert_alike(made, {panel.id: plotted(panel, whole) for panel in PANELS})
    assert not any(key[0] == "values" and key[1] == "loss" for key in run._cache)  # it was never held whole
    assert sum(isinstance(each, Curves) for each in made.values()) >= 8


def test_what_is_in_sight_is_the_same_before_the_cells_are_held_and_after(place: Path) -> None:
    run, whole = lazily(place), open_run(place)
    random = np.random.default_rng(1)
    views = [(0.0, 300.0), (65_000.0, 66_000.0), (ROWS - 40.5, ROWS + 3.0), (130_900.2, 131_100.7)]
    views += [(first, first + 10 ** random.uniform(0, 5)) for first in random.uniform(-50, ROWS, 12)]
    for panel_id, made in drawn_of(run).items():
        if not isinstance(made, Curves):
            continue
        true = plotted(next(panel for panel in PANELS if panel.id == panel_id), whole)
        for held in (False, True):
            for ours, them in zip(pyramids(made), pyramids(true), strict=True):
                for first, last in views:
                    some, other = envelope(ours, first, last, 90), envelope(them, first, last, 90)
                    for part in ("low", "high", "flags"):
                        np.testing.assert_array_equal(getattr(some, part), getattr(other, part), err_msg=panel_id)
                at = np.sort(random.integers(60_000, 70_000, 50))
                np.testing.assert_array_equal(ours.values[at], them.values[at])
                np.testing.assert_array_equal(ours.kinds[at], them.kinds[at])
                assert len(ours.values[ROWS:]) == 0
            if not held:
                hold(run, [made])


def test_skipped_rows_and_resumes_are_found_at_the_ends_of_stretches_too(place: Path) -> None:
    long, whole = (found_in(run, Rows.job(run)) for run in (lazily(place), open_run(place)))
    assert long.skipped.tolist() == whole.skipped.tolist() == [5, 6, 70_000, 70_001, LAST - 1, LAST, ROWS - 1]
    assert long.resumes.tolist() == whole.resumes.tolist() == [90_000, LAST]
    assert long.reasons == whole.reasons


def test_rows_that_come_later_go_on_from_those_that_were_there(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run", ENDS[:2])
    early = opened(undiagnosed(lazily(path)), ("loss", "grad_norm", "clocks"), diagnosed=False)
    assert len(early.diagnosis.run) == ENDS[1] > LONG
    whole = recorded(tmp_path / "whole")
    part = part_path(whole / "steps" / "rank=0", 2)
    part.rename(part_path(path / "steps" / "rank=0", 2))
    later = refreshed(early, ("loss", "grad_norm", "clocks"))
    fresh = opened(undiagnosed(lazily(path)), ("loss", "grad_norm", "clocks"), diagnosed=False)
    assert len(later.diagnosis.run) == ROWS
    assert_alike(later.plots[0], fresh.plots[0])
    assert later.rows[0].skipped.tolist() == fresh.rows[0].skipped.tolist()


@pytest.mark.parametrize("first_end", [LAST + 20, STRETCH + 20])
def test_a_column_that_comes_later_says_of_the_rows_before_what_a_fresh_reading_says(
    tmp_path: Path, first_end: int
) -> None:
    ends, wanted = (first_end, ROWS), ("loss_scale", "clocks")
    path = recorded(tmp_path / "run", ends)
    folder = path / "steps" / "rank=0"
    first = read_part(part_path(folder, 0), STEPS, None)[0].drop_columns(["scheduled_n"])
    last = part_path(folder, 1).rename(tmp_path / "later.parquet")
    write_part(part_path(folder, 0), first, np.zeros(0, dtype=np.int64))
    before = opened(undiagnosed(lazily(path)), wanted, diagnosed=False)
    before.diagnosis.run.kind("scheduled_n")  # of whole numbers, and till then no numbers at all
    last.rename(part_path(folder, 1))
    later, fresh = refreshed(before, wanted), opened(undiagnosed(lazily(path)), wanted, diagnosed=False)
    assert_alike(later.plots[0], fresh.plots[0])
    for name in ("scheduled_n", "loss_scale"):
        np.testing.assert_array_equal(later.diagnosis.run.values(name), fresh.diagnosis.run.values(name))
        np.testing.assert_array_equal(later.diagnosis.run.recorded(name), fresh.diagnosis.run.recorded(name))
    kinds = later.diagnosis.run.kind("scheduled_n")
    np.testing.assert_array_equal(kinds, fresh.diagnosis.run.kind("scheduled_n"))
    assert (kinds[: ends[0]] == Kind.NOT_APPLICABLE).all()


def early(place: Path, wanted: tuple[str, ...]) -> Opened:
    """What is shown of a run before its columns are held."""
    return prepare(str(place), wanted, lambda what: None)


def test_a_long_run_is_shown_before_its_columns_are_held(place: Path) -> None:
    shown = early(place, ("loss", "clocks"))
    assert not shown.diagnosed
    assert set(shown.plots[0]) == {"loss", "clocks"}


def test_the_window_reads_no_more_than_what_is_in_sight(
    window: Window, place: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    shown = early(place, window.session.series.wanted)
    read: list[int] = []

    def watched(part: Part, names: Sequence[str], first: int = 0, last: int | None = None) -> pa.Table:
        read.append((part.num_rows if last is None else last) - first)
        return whole(part, names, first, last)

    whole = Part.read
    monkeypatch.setattr(Part, "read", watched)
    window.session.show(shown)
    window.grab()
    for first, last in ((1_000.0, 1_400.0), (ROWS - 90_000.0, float(ROWS))):
        window.session.show_range(first, last)
        window.grab()
    assert read
    assert max(read) <= PIECE


def test_damage_is_told_of_where_a_stretch_is_read(tmp_path: Path) -> None:
    run = lazily(recorded(tmp_path / "run"))
    part = part_path(tmp_path / "run" / "steps" / "rank=0", 2)
    data = bytearray(part.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    part.write_bytes(data)
    with pytest.raises(RunError, match="part-000002"):
        drawn_of(run)


def test_a_row_that_is_gone_from_the_disk_is_not_gone_to_and_that_is_told(
    window: Window, qtbot: QtBot, tmp_path: Path
) -> None:
    """Nothing of the row before may stand under the name of one that cannot be read."""
    run = recorded(tmp_path / "run")
    with qtbot.waitSignal(window.session.opened, timeout=60_000):
        window.session.opener.open(str(run))
    qtbot.waitUntil(lambda: window.session.opener.task is None, timeout=60_000)
    window.session.inspect_row(5)
    title, told = window.windowTitle(), []
    window.session.told.connect(told.append)
    for part in (run / "steps" / "rank=0").iterdir():
        part.unlink()
    window.session.inspect_row(100_000)
    assert (window.session.cursor, window.windowTitle()) == (4, title)
    window.session.hover(150_000)
    assert window.session.hovered is None
    assert len(told) == 2 and all(each.endswith("is not there any more; open the run again") for each in told)


def test_a_card_whose_rows_are_gone_before_it_is_seen_says_so(window: Window, qtbot: QtBot, tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    with qtbot.waitSignal(window.session.opened, timeout=60_000):
        window.session.opener.open(str(run))
    qtbot.waitUntil(lambda: window.session.opener.task is None, timeout=60_000)
    for part in (run / "steps" / "rank=0").iterdir():
        part.unlink()
    cards = window.findChild(IncidentList)
    cards.model()._cards.clear()
    lazy_table._group.cache_clear()
    window.grab()  # an exception within Qt fails the test
    said = cards.model().index(0, 0).data()
    assert said.startswith("row ") and said.endswith("is not there any more; open the run again")
