"""What came back after a resume, measured: each piece of a loop's state left out in turn."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import mse_loss

from recorder import FlightRecorder
from recorder.store import read_run
from spikeview.importers import open_run
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.finding import Outcome

PARTS = ("model", "optimizer", "scheduler", "scaler", "rng", "sampler", "accumulation")
SAVED_AFTER = 10  # rows: in the middle of the fourth step of three micro-batches


class Loop:
    """A training with every kind of state, and each of them in its checkpoint."""

    def __init__(self) -> None:
        torch.manual_seed(7)
        np.random.seed(7)  # noqa: NPY002  # the global generator is what a loop may use
        random.seed(7)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
        self.place = 0

    def recorder(self, path: Path, **settings: Any) -> FlightRecorder:
        own = {"scaler": self.scaler, "scheduler": self.scheduler, "max_norm": 1.0, **settings}
        return FlightRecorder(path, self.model, self.optimizer, **own)

    def rows(self, recorder: FlightRecorder, count: int) -> Iterator[int]:
        for _ in range(count):
            last = self.place % 3 == 2
            x = torch.randn(8, 8, generator=torch.Generator().manual_seed(self.place))
            with recorder.transition(f"b{self.place}", step=self.place // 3, accumulating=not last) as t:
                loss = mse_loss(self.model(x), x.sum(1, keepdim=True)) + 0 * torch.rand(()) * random.random()
                t.observe_loss(loss)
                self.scaler.scale(loss).backward()
                if last:
                    t.clip_grad_norm_()
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
            self.place += 1
            yield self.place

    def save(self, recorder: FlightRecorder) -> dict[str, Any]:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rng": (torch.get_rng_state(), np.random.get_state(), random.getstate()),  # noqa: NPY002  # as above
            "sampler": self.place,
            "accumulation": [p.grad for p in self.model.parameters()],
            "recorder": recorder.state_dict(),
        }
        recorder.checkpoint("here", sampler=self.place)
        return copy.deepcopy(state)

    def load(self, state: dict[str, Any], without: str | None) -> None:
        for part in ("model", "optimizer", "scheduler", "scaler"):
            if part != without:
                getattr(self, part).load_state_dict(copy.deepcopy(state[part]))
        if without != "sampler":
            self.place = state["sampler"]
        if without != "accumulation":
            for parameter, gradient in zip(self.model.parameters(), state["accumulation"], strict=True):
                parameter.grad = None if gradient is None else gradient.clone()
        if without != "rng":
            torch.set_rng_state(state["rng"][0])
            np.random.set_state(state["rng"][1])  # noqa: NPY002  # as above
            random.setstate(state["rng"][2])


def interrupted(path: Path, without: str | None = None, elsewhere: Path | None = None, load: bool = True) -> Path:
    """A training that is resumed from a checkpoint in the middle of a step, and goes on."""
    first = Loop()
    with first.recorder(path) as recorder:
        list(first.rows(recorder, SAVED_AFTER))
        state = first.save(recorder)
        list(first.rows(recorder, 5))
    second = Loop()
    second.load(state, without)
    where = path if elsewhere is None else elsewhere
    with second.recorder(where, resume=elsewhere is None) as recorder:
        if load:
            recorder.load_state_dict(state["recorder"])
        recorder.resumed("here", sampler=second.place)
        list(second.rows(recorder, 11))
    return where


def resume_incomplete(path: Path) -> Any:
    return next(check for check in diagnose(open_run(path)).checks if check.id == "resume_incomplete")


@pytest.mark.parametrize("without", [None, *PARTS])
def test_each_piece_that_does_not_come_back_is_measured(tmp_path: Path, without: str | None) -> None:
    path = interrupted(tmp_path / "run", without)
    [event] = [event for event in read_run(path).events if event["kind"] == "resume"]
    assert set(event["lost"]) == ({without} if without else set())
    assert set(event["came_back"]) == set(PARTS) - {without}
    check = resume_incomplete(path)
    assert check.outcome is (Outcome.FAILED if without else Outcome.PASSED), check.evidence
    if without:
        assert f"not as it was at the checkpoint: {without} (" in check.evidence
    if without == "optimizer":
        assert "no exp_avg" in event["lost"]["optimizer"]
    if without == "scaler":
        assert "scale 64.0, was 128.0" in event["lost"]["scaler"]
    if without == "sampler":
        assert event["lost"]["sampler"] == "position 0, was 10"


def test_the_loops_own_word_does_not_stand_against_what_was_measured(tmp_path: Path) -> None:
    first = Loop()
    with first.recorder(tmp_path / "run") as recorder:
        list(first.rows(recorder, 9))
        state = first.save(recorder)
    second = Loop()
    second.load(state, "optimizer")
    with second.recorder(tmp_path / "run", resume=True) as recorder:
        recorder.resumed("here", restored=PARTS)
        list(second.rows(recorder, 6))
    check = resume_incomplete(tmp_path / "run")
    assert check.outcome is Outcome.FAILED
    assert "optimizer (no exp_avg" in check.evidence


def test_what_nobody_told_or_measured_is_not_known(tmp_path: Path) -> None:
    first = Loop()
    with first.recorder(tmp_path / "run") as recorder:
        list(first.rows(recorder, 9))
        state = first.save(recorder)
    second = Loop()
    second.load(state, None)
    with second.recorder(tmp_path / "run", resume=True) as recorder:
        recorder.resumed("here")
        list(second.rows(recorder, 6))
    check = resume_incomplete(tmp_path / "run")
    assert check.outcome is Outcome.CANNOT_TELL
    assert "whether sampler came back" in check.evidence


def test_loaded_clocks_count_what_the_parameters_have_seen(tmp_path: Path) -> None:
    rows = read_run(interrupted(tmp_path / "run")).table.to_pylist()
    assert [row["segment"] for row in rows] == [0] * 15 + [1] * 11
    assert [row["row"] for row in rows] == list(range(26))
    for name in ("step", "micro_step", "attempted_n", "executed_n", "scheduled_n", "loss", "lr", "loss_scale"):
        # the first rows after the resume are those that the first segment recorded after its checkpoint
        assert [row[name] for row in rows[15:20]] == [row[name] for row in rows[SAVED_AFTER:15]], name
    assert rows[-1]["executed_n"] == 7


def test_a_state_goes_on_in_another_directory(tmp_path: Path) -> None:
    there = interrupted(tmp_path / "run", "optimizer", elsewhere=tmp_path / "other")
    rows = read_run(there).table.to_pylist()
    assert [row["executed_n"] for row in rows[:3]] == [3, 4, 4]
    [event] = [event for event in read_run(there).events if event["kind"] == "resume"]
    assert set(event["lost"]) == {"optimizer"}


def test_going_back_within_one_process_begins_a_segment(tmp_path: Path) -> None:
    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        list(loop.rows(recorder, 9))
        state = loop.save(recorder)
        list(loop.rows(recorder, 6))
        loop.optimizer.zero_grad()
        loop.load(state, "accumulation")
        recorder.load_state_dict(state["recorder"])
        recorder.resumed("here", sampler=loop.place)
        list(loop.rows(recorder, 3))
    rows = read_run(tmp_path / "run").table.to_pylist()
    assert [row["segment"] for row in rows] == [0] * 15 + [1] * 3
    assert [(row["executed_n"], row["scheduled_n"]) for row in rows[15:]] == [(3, 3), (3, 3), (4, 4)]
    assert resume_incomplete(tmp_path / "run").outcome is Outcome.PASSED


def test_a_row_that_is_open_when_the_loop_goes_back_belongs_to_what_came_before(tmp_path: Path) -> None:
    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        list(loop.rows(recorder, 6))
        recorder.checkpoint("here", sampler=loop.place)
        list(loop.rows(recorder, 3))
        recorder.begin("open")
        recorder.return_to("here")
        list(loop.rows(recorder, 3))
    rows = read_run(tmp_path / "run").table.to_pylist()
    assert [row["segment"] for row in rows] == [0] * 10 + [1] * 3
    assert (rows[9]["batch_id"], rows[9]["executed_n"]) == ("open", 3)
    assert [row["executed_n"] for row in rows[10:]] == [2, 2, 3]


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault:RuntimeWarning")
def test_what_is_no_state_is_noted_and_the_training_goes_on(tmp_path: Path) -> None:
    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        recorder.load_state_dict({"model": 1})
        list(loop.rows(recorder, 3))
    run = read_run(tmp_path / "run")
    assert [row["executed_n"] for row in run.table.to_pylist()] == [0, 0, 1]
    assert any("state_dict() gave" in event["text"] for event in run.events if event["kind"] == "recorder_fault")


def test_a_checkpoint_and_its_state_move_nothing(tmp_path: Path) -> None:
    ended = []
    for recorded in (False, True):
        loop = Loop()
        with loop.recorder(tmp_path / str(recorded)) as recorder:
            for place in loop.rows(recorder, 12):
                if recorded and place % 4 == 0:
                    recorder.checkpoint(f"at {place}", sampler=place)
                    recorder.state_dict()
        ended.append((loop.model.state_dict(), torch.get_rng_state(), random.getstate()))
    assert all(torch.equal(ended[0][0][name], ended[1][0][name]) for name in ended[0][0])
    assert torch.equal(ended[0][1], ended[1][1])
    assert ended[0][2] == ended[1][2]


def resumed_once(path: Path, then: Any = None, now: Any = None, **how: Any) -> dict[str, Any]:
    """The resume event of a loop that resumes at once from what it has just saved, at these positions in the data."""
    loop = Loop()
    with loop.recorder(path) as recorder:
        list(loop.rows(recorder, 2))
        recorder.checkpoint("here", sampler=then)
        recorder.resumed("here", sampler=now, **how)
    [event] = [event for event in read_run(path).events if event["kind"] == "resume"]
    return dict(event)


class Positioned:
    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state()


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (20, np.int64(20)),
        (20, torch.tensor(20)),
        ((1, "a", 2.5), [1, "a", 2.5]),
        (float("nan"), float("nan")),
        (Positioned(lambda: {"epoch": 1, "at": (2,)}), Positioned(lambda: {"at": [2], "epoch": 1})),
        (Positioned(lambda: {"drawn": {3, 4}}), Positioned(lambda: {"drawn": {4, 3}})),
    ],
)
def test_a_position_is_the_same_whichever_types_hold_it(tmp_path: Path, then: Any, now: Any) -> None:
    assert "sampler" in resumed_once(tmp_path / "run", then, now)["came_back"]
    assert "sampler" in resumed_once(tmp_path / "other", then, 21)["lost"]


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault:RuntimeWarning")
@pytest.mark.parametrize("sampler", [object(), Positioned(lambda: {"of": object()}), Positioned(lambda: 1 / 0)])
def test_a_position_that_has_no_value_takes_nothing_else_with_it(tmp_path: Path, sampler: Any) -> None:
    event = resumed_once(tmp_path / "run", sampler, sampler)
    assert set(event["came_back"]) == set(PARTS) - {"sampler"}
    assert event["lost"] == {}


STATE = {"format": 1, "clocks": {"optimizer": [5, 4, 3]}, "step": 2, "micro_step": 0, "fingerprint": {}}


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault:RuntimeWarning")
@pytest.mark.parametrize(
    "state",
    [
        *(None, 5, "text", [], {}, {"format": 1}, {**STATE, "format": 2}, {**STATE, "step": 10**30}),
        *({**STATE, "step": "two"}, {**STATE, "micro_step": None}, {**STATE, "fingerprint": 7}),
        *({**STATE, "fingerprint": {"model": 3}}, {**STATE, "clocks": {"optimizer": [1]}}, {**STATE, "clocks": [1, 2]}),
        *({**STATE, "clocks": {"optimizer": [-5, 7, None]}}, {**STATE, "clocks": {"optimizer": ["a", 1, 2]}}),
    ],
)
def test_what_is_no_state_changes_nothing_and_is_said(tmp_path: Path, state: Any) -> None:
    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        list(loop.rows(recorder, 6))
        recorder.load_state_dict(state)
        list(loop.rows(recorder, 6))
    run = read_run(tmp_path / "run")
    rows = run.table.to_pylist()
    assert [row["step"] for row in rows] == [number // 3 for number in range(12)]
    assert [row["executed_n"] for row in rows] == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert {row["segment"] for row in rows} == {0}
    assert [event["text"].split(",")[0] for event in run.events if event["kind"] == "recorder_fault"] == [
        "ValueError: load_state_dict takes what recorder.state_dict() gave"
    ]


def test_a_state_of_other_optimizers_says_whose_clocks_go_on(tmp_path: Path) -> None:
    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        list(loop.rows(recorder, 3))
        recorder.load_state_dict({**STATE, "clocks": {"critic": [9, 9, None]}})
        list(loop.rows(recorder, 3))
    run = read_run(tmp_path / "run")
    assert run.table.to_pylist()[-1]["executed_n"] == 2
    [note] = [event["text"] for event in run.events if event["kind"] == "note"]
    assert "holds critic and not optimizer" in note


@pytest.mark.parametrize(
    ("restored", "said"), [(["modell"], "'model'"), (["Optimizers"], "'optimizer'"), ("ema", "rng")]
)
def test_a_part_that_is_misspelt_is_warned_about(tmp_path: Path, restored: Any, said: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"counts for nothing.*{said}"):
        event = resumed_once(tmp_path / "run", restored=restored)
    assert event["restored"] == ([restored] if isinstance(restored, str) else restored)
    assert any("counts for nothing" in event.get("text", "") for event in read_run(tmp_path / "run").events)


def test_a_single_part_needs_no_list(tmp_path: Path) -> None:
    assert resumed_once(tmp_path / "run", restored="model")["restored"] == ["model"]


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault:RuntimeWarning")
def test_names_that_have_no_text_never_reach_the_loop(tmp_path: Path) -> None:
    class Silent:
        def __str__(self) -> str:
            raise ValueError("no text")

    loop = Loop()
    with loop.recorder(tmp_path / "run") as recorder:
        recorder.checkpoint(Silent())  # type: ignore[arg-type]  # what a loop may give
        recorder.return_to(Silent())  # type: ignore[arg-type]
        recorder.resumed(Silent(), restored=5)  # type: ignore[arg-type]
        list(loop.rows(recorder, 3))
    assert read_run(tmp_path / "run").table.num_rows == 3
