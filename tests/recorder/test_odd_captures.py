"""Captures in loops that are not the plain one, and of values that are not plain: nothing is lost, and all is said."""

from __future__ import annotations

import math
import os
import random
import signal
from collections import UserDict, namedtuple
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from recorder import CapturePolicy, Trigger, above
from recorder.capture import Capture, Generators, captures_of, read_capture

Body = Callable[[Any, Any, int], None]


def loop(record: Any, model: nn.Module, optimizers: Any, rows: int, body: Body, **settings: Any) -> list[Capture]:
    settings.setdefault("capture", CapturePolicy())
    with record(model, optimizers, **settings) as recorder:
        for index in range(rows):
            with recorder.transition() as t:
                body(recorder, t, index)
    return [read_capture(path) for path in captures_of(record.path)]


def step(model: nn.Module, optimizer: Any, t: Any, factor: float = 1.0) -> None:
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).square().sum() * factor
    t.observe_loss(loss)
    loss.backward()
    t.clip_grad_norm_()
    optimizer.step()


def of_batch(record: Any, batch: Any) -> Capture:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body(recorder: Any, t: Any, _index: int) -> None:
        t.observe_batch(batch)
        recorder.capture("asked for")
        step(model, optimizer, t)

    (capture,) = loop(record, model, optimizer, 1, body, capture=CapturePolicy(triggers=[]))
    return capture


def nest(levels: int) -> list[Any]:
    outer: list[Any] = []
    for _ in range(levels):
        outer = [outer]
    return outer


def test_keys_whose_texts_are_alike_keep_values_of_their_own(record: Any) -> None:
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    batch = {"a/b": one, "a": {"b": two}, 1: one, "1": two, math.nan: one, "$tensor": "text", "\ud800": two}
    back = of_batch(record, batch).contents["batch"]
    assert [back["a/b"], back["a"]["b"], back[1], back["1"], back["\ud800"]] == [one, two, one, two, two]
    assert back["$tensor"] == "text"
    assert [value for key, value in back.items() if key != key] == [one]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10**5000, "batch/odd (int)"),
        (np.zeros(2, np.longdouble), "ndarray of float128"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "MaskedArray"),
        (torch.zeros(2, dtype=torch.complex128), "torch.complex128"),
        (torch.eye(2).to_sparse(), "batch/odd (Tensor"),
        ({("a", 1): torch.zeros(1)}, "batch/odd (dict)"),
        (nest(500), "(list)"),
    ],
    ids=["a huge number", "long double", "masked", "complex128", "sparse", "keys that are tuples", "deep"],
)
def test_a_value_that_cannot_be_stored_costs_nothing_else_of_the_batch(record: Any, value: Any, said: str) -> None:
    capture = of_batch(record, {"odd": value, "x": torch.ones(2)})
    assert torch.equal(capture.contents["batch"]["x"], torch.ones(2))
    assert any(said in line for line in capture.left_out)
    assert said in record.events("note")[0]["text"]


def test_values_of_like_kinds_come_back_as_the_plain_ones(record: Any) -> None:
    Pair = namedtuple("Pair", "x y")  # as loops write it
    shown = torch.ones(2).as_subclass(type("Image", (torch.Tensor,), {}))
    batch = [Pair(torch.ones(1, requires_grad=True), 2), UserDict(a=np.zeros(2, ">f4")), shown]
    back = of_batch(record, batch).contents["batch"]
    assert back[0] == (torch.ones(1), 2)
    assert back[1]["a"].tolist() == [0.0, 0.0]
    assert type(back[2]) is torch.Tensor


def test_a_batch_of_no_kind_that_is_stored_is_not_there(record: Any) -> None:
    capture = of_batch(record, object())
    assert "batch" not in capture.contents
    assert any("batch (object)" in line for line in capture.left_out)


def test_a_row_asked_for_that_trips_as_well_is_captured_once(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body(recorder: Any, t: Any, _index: int) -> None:
        recorder.capture("asked for")
        step(model, optimizer, t, math.nan)

    (capture,) = loop(record, model, optimizer, 1, body)
    assert capture.facts["why"] == "asked for"
    assert {event.get("left_out") for event in record.events("capture")} == {None, "it was captured already"}
    assert not record.events("recorder_fault")


def test_each_optimizer_of_a_transition_is_looked_at_by_its_own_measure(record: Any) -> None:
    """A loss of 100 is ordinary for one of them; the other's leaves its 1 at row 30."""
    model = nn.ModuleDict({"d": nn.Linear(2, 1), "g": nn.Linear(2, 1)})
    optimizers = {name: torch.optim.SGD(model[name].parameters(), lr=0.0) for name in model}

    def body(_recorder: Any, t: Any, index: int) -> None:
        for name, factor in (("d", 100.0), ("g", 60.0 if index == 30 else 1.0)):
            step(model[name], optimizers[name], t.of(name), factor)

    (capture,) = loop(record, model, optimizers, 32, body)
    assert (capture.row, capture.facts["optimizer"]) == (30, "g")
    assert any("before the forward" in line for line in capture.left_out)
    assert capture.contents["layouts"]["g"]["groups"] == [["g.weight", "g.bias"]]


def test_a_later_step_of_a_transition_is_captured_and_what_it_lacks_is_said(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def body(_recorder: Any, t: Any, index: int) -> None:
        for epoch in range(3):
            step(model, optimizer, t, math.nan if (index, epoch) == (1, 1) else 1.0)

    (capture,) = loop(record, model, optimizer, 2, body)
    assert capture.row == 4
    assert capture.facts["executed_n"] == capture.facts["executed_in_segment"] == 4
    assert any("before the forward" in line for line in capture.left_out)


def test_a_capture_after_the_step_says_so(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body(recorder: Any, t: Any, _index: int) -> None:
        step(model, optimizer, t)
        recorder.capture("late")

    (capture,) = loop(record, model, optimizer, 1, body, capture=CapturePolicy(triggers=[]))
    assert any("a step had been attempted" in line for line in capture.left_out)


def test_a_state_that_cannot_be_told_costs_neither_the_capture_nor_the_row(record: Any) -> None:
    class Silent(torch.optim.lr_scheduler.LambdaLR):
        def state_dict(self) -> dict[str, Any]:
            raise RuntimeError("no state")

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = Silent(optimizer, lambda _epoch: 1.0)

    def body(_recorder: Any, t: Any, index: int) -> None:
        step(model, optimizer, t, 1e9 if index == 2 else 1.0)

    policy = CapturePolicy(triggers=[above("loss", 1e6)])
    (capture,) = loop(record, model, optimizer, 3, body, scheduler=scheduler, capture=policy)
    assert "optimizers" in capture.contents
    assert any("schedulers/optimizer" in line and "no state" in line for line in capture.left_out)
    assert record.column("moved") == [True, True, True]


def test_a_trigger_may_answer_with_anything(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    answers = Trigger("answers", lambda _row: True)  # type: ignore[arg-type,return-value]  # as a user may
    captures = loop(
        record,
        model,
        optimizer,
        1,
        lambda _r, t, _i: step(model, optimizer, t),
        capture=CapturePolicy(triggers=[answers]),
    )
    assert captures[0].facts["why"] == "True"


def failing(record: Any) -> list[Capture]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body(recorder: Any, t: Any, index: int) -> None:
        t.observe_batch(["x" * 1000] * 70_000 if index == 0 else torch.ones(1))
        recorder.capture("asked for")
        step(model, optimizer, t)

    return loop(record, model, optimizer, 2, body, capture=CapturePolicy(triggers=[], most=1, batches=1))


def test_a_capture_that_was_not_written_counts_for_nothing_and_is_told(record: Any) -> None:
    with pytest.warns(RuntimeWarning, match="give tensors or arrays"):
        captures = failing(record)
    told = [("left_out" in event, "path" in event) for event in record.events("capture") if event["row"] == 0]
    assert told == [(True, False)]
    assert len(captures) <= 1  # the second one may have come while the first was being written


@pytest.mark.parametrize("given", [True, "each row", above("loss", 1.0)])
def test_what_is_no_policy_is_refused_before_anything_is_written(record: Any, given: Any) -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(TypeError, match="CapturePolicy"):
        record(model, torch.optim.SGD(model.parameters(), lr=0.1), capture=given)
    assert not record.path.exists()
    with pytest.raises(TypeError, match=r"recorder\.Trigger"):
        CapturePolicy(triggers=[lambda _row: None])  # type: ignore[list-item]  # as a user may


def test_generators_and_parameters_are_the_same_with_every_row_captured(record: Any) -> None:
    class Changing(nn.Module):
        """Tied and frozen parameters, buffers changed in place and replaced."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)
            self.tied = self.first.weight
            self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
            self.register_buffer("grown", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.grown = torch.cat([self.grown, self.grown[-1:] + 1])
            hidden = nn.functional.dropout(torch.tanh(self.norm(self.first(x))), 0.3)
            return self.last(hidden)

    ends = []
    for captured in (False, True):
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002  # the global generators are what is looked at
        random.seed(3)
        model = Changing()
        optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.01))

        def body(_recorder: Any, t: Any, index: int, model: nn.Module = model, optimizer: Any = optimizer) -> None:
            if index == 4:
                model.add_module("late", nn.Linear(1, 1))
                optimizer.add_param_group({"params": list(model.late.parameters())})
            x = torch.randn(8, 4) * random.random() + float(np.random.rand())  # noqa: NPY002  # as above
            t.observe_batch(x)
            optimizer.zero_grad()
            loss = model(x).square().mean()
            t.observe_loss(loss)
            loss.backward()
            optimizer.step()

        every = Trigger("every other", lambda row: "due" if row["row"] % 2 else None)
        policy = CapturePolicy(triggers=[every], most=20) if captured else None
        taken = loop(record, model, optimizer, 8, body, capture=policy, resume=captured)
        parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
        generators = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]  # noqa: NPY002  # as above
        ends.append((parameters, *generators))
    assert torch.equal(ends[0][0], ends[1][0])
    assert torch.equal(ends[0][1], ends[1][1])
    assert ends[0][2:] == ends[1][2:]
    assert taken
    assert all(len(capture.contents["buffers"]["grown"]) == capture.row % 8 + 1 for capture in taken)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_captures_nothing_and_does_not_hang(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body(recorder: Any, t: Any, index: int) -> None:
        recorder.capture("parent")
        if index == 1:
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                with suppress(BaseException):
                    recorder.capture("child")
                    recorder.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        step(model, optimizer, t)

    captures = loop(record, model, optimizer, 2, body, capture=CapturePolicy(triggers=[]))
    assert {capture.facts["why"] for capture in captures} == {"parent"}


def test_what_a_killed_process_left_is_removed_and_odd_names_are_no_captures(record: Any) -> None:
    folder: Path = record.path / "captures"
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capturing = {"capture": CapturePolicy(triggers=[], most=2)}

    def body(recorder: Any, t: Any, _index: int) -> None:
        recorder.capture("asked for")
        step(model, optimizer, t)

    loop(record, model, optimizer, 1, body, **capturing)
    for name in ("_tmp-row-000007", "_tmp-row-000007-rank=1", "row-abc", "row-1000000"):
        (folder / name).mkdir()
        (folder / name / "capture.json").write_text("{}")
    assert [path.name for path in captures_of(record.path)] == ["row-000000", "row-1000000"]
    loop_again = record(model, optimizer, resume=True, **capturing)
    loop_again.close()
    assert not (folder / "_tmp-row-000007").exists()
    assert (folder / "_tmp-row-000007-rank=1").exists()


DRAWS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: np.random.normal(),  # holds a second one over  # noqa: NPY002  # the global generator is what is kept
    lambda: np.random.normal(),  # takes it, and no word of the generator changes  # noqa: NPY002
    lambda: np.random.normal(),  # noqa: NPY002
    lambda: None,
    lambda: np.random.uniform(),  # noqa: NPY002
    lambda: np.random.seed(1),  # noqa: NPY002
    lambda: np.random.normal(size=1001),  # noqa: NPY002
    lambda: np.random.set_bit_generator(np.random.PCG64(1)),
    lambda: np.random.normal(),  # noqa: NPY002
)


def test_the_generator_of_numpy_is_kept_as_it_is_whatever_was_drawn() -> None:
    before, kept = np.random.get_bit_generator(), Generators()
    try:
        for draw in DRAWS:
            draw()
            np.testing.assert_equal(kept.states()["numpy"], np.random.get_state(legacy=False))  # noqa: NPY002
    finally:
        np.random.set_bit_generator(before)
