"""A run that goes back keeps both branches, and says which rows it abandoned."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recorder.store import RunWriter, StoredRun, read_run
from spikeview.cli import main
from spikeview.importers import open_run
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.finding import Outcome

MakeRow = Callable[..., dict[str, Any]]


class Loop:
    """Writes rows of given steps, and reads between them: what was followed must be what a fresh reading says."""

    def __init__(self, path: Path, make_row: MakeRow) -> None:
        self.path = path
        self.writer = RunWriter.create(path, {}, roll_rows=11)
        self.row = 0
        self._make_row = make_row
        self._run = read_run(path)

    def steps(self, steps: Sequence[int], micro: int = 1, optimizers: Sequence[str] = ("main",)) -> Loop:
        for step in steps:
            for place in range(micro):
                for name in optimizers:
                    columns = {"step": step, "micro_step": place, "optimizer": name, "segment": self.writer.segment}
                    self.writer.append(self._make_row(self.row, **columns))
                self.row += 1
                if self.row % 5 == 0:
                    self.look()
        self.look()
        return self

    def resume(self) -> Loop:
        self.writer.close()
        self.writer = RunWriter.create(self.path, {}, resume=True, roll_rows=11)
        return self

    def says(self, kind: str, **fields: Any) -> Loop:
        self.writer.event(kind, row=self.row - 1, **fields)
        self.look()
        return self

    def look(self) -> StoredRun:
        self._run, fresh = self._run.refreshed(), read_run(self.path)
        assert self._run.rewinds == fresh.rewinds
        assert self._run.notes == fresh.notes
        return fresh

    def abandoned(self) -> list[tuple[int, int]]:
        """The stretches of row numbers that were abandoned."""
        run = open_run(self.path)
        rows = sorted(set(run.values("row")[run.abandoned].tolist()))
        firsts = [row for row in rows if row - 1 not in rows]
        lasts = [row for row in rows if row + 1 not in rows]
        self.writer.close()
        return list(zip(firsts, lasts, strict=True))


@pytest.fixture
def loop(tmp_path: Path, make_row: MakeRow) -> Loop:
    return Loop(tmp_path / "run", make_row)


def test_a_run_that_only_goes_on_has_abandoned_nothing(loop: Loop) -> None:
    loop.steps(range(5)).resume().steps(range(5, 9)).resume().steps(range(9, 12))
    assert loop.look().rewinds == ()
    assert loop.look().notes == ()
    assert loop.abandoned() == []


def test_a_resume_from_an_older_checkpoint_abandons_the_steps_that_come_again(loop: Loop) -> None:
    loop.steps(range(14)).resume().steps(range(10, 20))
    run = loop.look()
    [rewind] = run.rewinds
    assert (rewind.at, rewind.step, rewind.rows, rewind.steps) == (14, 10, ((10, 13),), (10, 13))
    assert run.notes == ("rows 10 to 13 (steps 10 to 13) were abandoned: the run went back to step 10",)
    assert run.table.num_rows == 24
    assert loop.abandoned() == [(10, 13)]


def test_a_step_that_is_made_again_is_abandoned_the_first_time(loop: Loop) -> None:
    loop.steps(range(5)).resume().steps(range(4, 7))
    assert loop.look().notes == ("row 4 (step 4) was abandoned: the run went back to step 4",)
    assert loop.abandoned() == [(4, 4)]


def test_a_run_may_go_back_again_and_again(loop: Loop) -> None:
    loop.steps(range(10)).resume().steps(range(5, 12)).resume().steps(range(3, 8)).resume().steps(range(6, 9))
    run = loop.look()
    assert [rewind.rows for rewind in run.rewinds] == [((5, 9),), ((3, 4), (10, 16)), ((20, 21),)]
    assert run.notes[1] == ("rows 3 to 4 and 10 to 16 (steps 3 to 11) were abandoned: the run went back to step 3")
    assert loop.abandoned() == [(3, 16), (20, 21)]


def test_a_run_may_begin_at_a_step_that_is_not_the_first(loop: Loop) -> None:
    loop.steps(range(100, 110)).resume().steps(range(90, 112)).resume().steps(range(105, 107))
    assert [rewind.rows for rewind in loop.look().rewinds] == [((0, 9),), ((25, 31),)]
    assert loop.abandoned() == [(0, 9), (25, 31)]


def test_micro_steps_of_one_step_are_no_way_back_and_go_with_their_step(loop: Loop) -> None:
    loop.steps(range(4), micro=3).resume().steps(range(2, 5), micro=3)
    assert loop.look().notes == ("rows 6 to 11 (steps 2 to 3) were abandoned: the run went back to step 2",)
    assert loop.abandoned() == [(6, 11)]


def test_all_optimizers_of_a_transition_go_with_it(loop: Loop) -> None:
    loop.steps(range(6), optimizers=("a", "b")).resume().steps(range(4, 8), optimizers=("a", "b"))
    run = open_run(loop.path)
    assert run.abandoned.nonzero()[0].tolist() == [8, 9, 10, 11]
    assert run.of("b").abandoned.nonzero()[0].tolist() == [4, 5]
    assert loop.abandoned() == [(4, 5)]


def test_a_step_that_falls_within_a_segment_is_a_rollback(loop: Loop) -> None:
    loop.steps(range(20)).steps(range(12, 18)).steps(range(15, 25))
    assert [rewind.rows for rewind in loop.look().rewinds] == [((12, 19),), ((23, 25),)]
    assert loop.abandoned() == [(12, 19), (23, 25)]


def test_a_step_that_was_gone_back_to_is_no_duplicate(loop: Loop) -> None:
    loop.steps(range(20)).steps(range(12, 18))
    loop.writer.close()
    [check] = [each for each in diagnose(open_run(loop.path)).checks if each.id == "duplicate_steps"]
    assert check.outcome is Outcome.PASSED


def test_a_loop_that_counts_anew_in_every_epoch_abandons_nothing(loop: Loop) -> None:
    loop.steps(range(10)).steps(range(10)).steps(range(6))
    assert loop.look().rewinds == ()
    loop.resume().steps(range(4, 10)).steps(range(10))  # and a resume within an epoch goes back within that epoch
    assert [rewind.rows for rewind in loop.look().rewinds] == [((24, 25),)]
    loop.steps(range(5)).resume().steps(range(3))
    assert loop.abandoned() == [(24, 25), (42, 46)]


def test_back_to_the_first_step_within_a_segment_is_a_way_back_where_the_loop_says_so(loop: Loop) -> None:
    loop.steps(range(10)).says("resume", from_checkpoint="start").steps(range(10))
    assert loop.abandoned() == [(0, 9)]


def test_a_checkpoint_that_the_run_named_says_where_it_goes_on_though_its_steps_do_not_fall(loop: Loop) -> None:
    loop.steps(range(5)).says("checkpoint", name="early").steps(range(5, 8)).says("checkpoint", name="last")
    loop.steps(range(8, 12)).resume().says("resume", from_checkpoint="last", restored=["model"])
    loop.steps(range(12, 15))
    assert loop.look().notes == (
        "rows 8 to 11 (steps 8 to 11) were abandoned: the run went back to checkpoint last, at step 12",
    )
    loop.says("resume", from_checkpoint="early", restored=["model"]).steps(range(15, 17))
    assert [rewind.rows for rewind in loop.look().rewinds] == [((8, 11),), ((5, 7), (12, 14))]
    assert loop.abandoned() == [(5, 14)]


def test_a_checkpoint_of_the_same_name_is_the_last_one(loop: Loop) -> None:
    loop.steps(range(5)).says("checkpoint", name="last").steps(range(5, 10)).says("checkpoint", name="last")
    loop.steps(range(10, 13)).says("resume", from_checkpoint="last").steps(range(10, 12))
    assert loop.abandoned() == [(10, 12)]


def test_a_resume_that_is_told_on_its_first_row_is_one_of_that_row(loop: Loop) -> None:
    loop.steps(range(4)).says("checkpoint", name="a").steps(range(4, 8)).resume().steps([8])
    loop.says("resume", from_checkpoint="a").steps(range(9, 12))
    assert loop.abandoned() == [(4, 7)]


def test_a_checkpoint_at_the_last_row_or_of_another_run_abandons_nothing(loop: Loop) -> None:
    loop.steps(range(4)).says("checkpoint", name="a").resume().says("resume", from_checkpoint="a").steps(range(4, 6))
    loop.resume().says("resume", from_checkpoint="elsewhere/b").steps(range(6, 8))
    assert loop.abandoned() == []


def test_steps_in_no_order_abandon_nothing(loop: Loop) -> None:
    steps = [(number * 37) % 101 for number in range(120)]
    loop.steps(steps)
    assert loop.abandoned() == []


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "resume", "row": "3", "from_checkpoint": "a"},
        {"kind": "resume", "row": True, "from_checkpoint": ["a"]},
        {"kind": "resume", "row": -5, "from_checkpoint": None},
        {"kind": "resume", "row": 10**30, "from_checkpoint": "a"},
        {"kind": "checkpoint", "row": 10**30, "name": {"a": 1}},
        {"kind": ["resume"], "row": 3},
        {"row": 3},
    ],
)
def test_events_of_no_recorder_are_no_way_back(tmp_path: Path, make_row: MakeRow, event: dict[str, Any]) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.event("checkpoint", name="a", row=1)
    for number in range(6):
        writer.append(make_row(number))
    run = read_run(tmp_path)
    writer.event(**event) if "kind" in event else None
    writer.append(make_row(6))
    assert run.refreshed().rewinds == read_run(tmp_path).rewinds
    writer.close()


def test_many_ways_back_are_told_in_few_lines(loop: Loop) -> None:
    for first in range(12):
        loop.resume().steps(range(first, first + 3))
    notes = loop.look().notes
    assert len(notes) == 9
    assert notes[-1] == "the run went back 3 more times"
    loop.writer.close()


def test_triage_and_report_say_what_was_abandoned(
    loop: Loop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop.steps(range(14)).resume().steps(range(10, 20))
    loop.writer.close()
    line = "rows 10 to 13 (steps 10 to 13) were abandoned: the run went back to step 10"
    main(["triage", str(loop.path)])
    assert line in " ".join(capsys.readouterr().out.split())
    main(["triage", "--json", str(loop.path)])
    assert line in json.loads(capsys.readouterr().out)["notes"]
    assert main(["report", str(loop.path), "-o", str(tmp_path / "report.json")]) == 0
    assert line in (tmp_path / "report.json").read_text()
