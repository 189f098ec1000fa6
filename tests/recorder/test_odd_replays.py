"""Replays of odd loops, entries and files: a verdict is earned or not given, and a refusal is one line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from recorder import CapturePolicy
from recorder.capture import Capture, captures_of, read_capture
from recorder.replay import ReplayError, replay
from recorder.replay.comparison import DOES_NOT_TELL, REFUTES, SUPPORTS, Comparison
from recorder.replay.data import is_it_the_batch, is_it_the_state
from recorder.replay.history import is_it_the_history, is_the_history_lost
from recorder.replay.outcome import Outcome
from recorder.replay.precisions import range_and_arithmetic
from recorder.replay.replay import result_of
from recorder.replay.setting import Built
from recorder.replay.updates import Update
from recorder.replay.wording import lines
from recorder.store import StoreError

Batch = tuple[torch.Tensor, torch.Tensor]


def build() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def of_pair(model: nn.Module, batch: Any) -> torch.Tensor:
    return mse_loss(model(batch[0]).to(batch[1].dtype), batch[1])


def batches(count: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(8, 4, generator=generator) for _ in range(count)]
    return [(x, x.sum(1, keepdim=True)) for x in drawn]


def run(
    record: Any,
    model: nn.Module,
    optimizer: Any,
    given: Sequence[Batch],
    captured: Sequence[int] = (),
    loss_of: Callable[[nn.Module, Any], torch.Tensor] = of_pair,
    micro_steps: int = 1,
    **settings: Any,
) -> list[Capture]:
    """A loop that captures some rows, by default the last."""
    with record(model, optimizer, capture=CapturePolicy(triggers=[]), **settings) as recorder:
        for index, batch in enumerate(given):
            is_last = (index + 1) % micro_steps == 0
            with recorder.transition(accumulating=not is_last) as t:
                t.observe_batch(batch)
                if index % micro_steps == 0:
                    optimizer.zero_grad()
                loss = loss_of(model, batch)
                t.observe_loss(loss)
                loss.backward()
                if is_last:
                    t.clip_grad_norm_()
                    if index in (captured or [len(given) - 1]):
                        recorder.capture("asked for")
                    optimizer.step()
    return [read_capture(path) for path in captures_of(record.path)]


def verdicts(built: Built, captures: Sequence[Capture]) -> dict[str, Any]:
    """The result of the last capture, with its verdicts and outcomes by id."""
    result = result_of(built, captures[-1], list(captures[:-1]))
    by_id = {c["id"]: c for c in result["comparisons"]}
    return {
        **result,
        "verdicts": {name: c["verdict"] for name, c in by_id.items()},
        "outcomes": {name: c["outcome"] for name, c in by_id.items()},
    }


def outcome(loss: float, norm: float = 1.0, finite: bool | None = None, largest: float = 1.0) -> Outcome:
    is_finite = abs(loss) < float("inf") and abs(norm) < float("inf") if finite is None else finite
    return Outcome("one", loss, norm, is_finite, None, None, (("module", largest, 0.0),))


NAN, INF = float("nan"), float("inf")
SOME = Comparison("batch", "", "", "", REFUTES)


@pytest.mark.parametrize(
    ("own", "others", "batch", "state"),
    [
        ((5, 5), [(1, 1), (1, 1)], SUPPORTS, SUPPORTS),
        ((1, 1), [(1, 1), (1, 1)], REFUTES, REFUTES),
        ((5, 1), [(0, 1), (0, 1)], DOES_NOT_TELL, DOES_NOT_TELL),
        ((-1, 1), [(-5, 1), (-5, 1)], DOES_NOT_TELL, DOES_NOT_TELL),
        ((0, 0), [(0, 0), (0, 0)], REFUTES, REFUTES),
        ((5, 5), [(1, 1), (NAN, NAN)], REFUTES, SUPPORTS),
        ((NAN, NAN), [(1, 1), (1, 1)], SUPPORTS, SUPPORTS),
        ((NAN, NAN), [(1, 1), (NAN, 1)], DOES_NOT_TELL, SUPPORTS),
        ((INF, NAN), [(INF, NAN), (INF, NAN)], REFUTES, REFUTES),
        ((1, 50), [(1, 1), (1, 1)], SUPPORTS, SUPPORTS),
        ((9, 9), [(1, 1)], DOES_NOT_TELL, SUPPORTS),
    ],
)
def test_batch_and_state_are_judged_by_order_with_zeros_signs_and_nan(
    own: Any, others: Any, batch: str, state: str
) -> None:
    found = [outcome(*each) for each in others]
    assert is_it_the_batch(outcome(*own), found).verdict == batch
    assert is_it_the_state(outcome(*own), found, SOME).verdict == state


@pytest.mark.parametrize(
    ("recorded", "fp64", "fp32", "bf16", "fp16", "expected"),
    [
        ("fp16", (1,), (1,), (1,), (INF,), SUPPORTS),
        ("fp16", (1,), (1,), (INF,), (INF,), DOES_NOT_TELL),  # rounding, as bf16 has the range
        ("fp16", (1,), (1, 0.5), (1,), (1, 0.0), DOES_NOT_TELL),  # its gradient vanished
        ("bf16", (1,), (1,), (NAN,), (1,), DOES_NOT_TELL),  # the same range as fp32
        ("fp32", (1e50,), (INF,), (INF,), (INF,), SUPPORTS),
        ("fp32", (1,), (INF,), (INF,), (INF,), DOES_NOT_TELL),  # nothing in fp64 is too large for fp32
        ("fp32", (1,), (1,), (1,), (INF,), REFUTES),
        ("fp32", (0, 0), (0, 0), (0, 0), (0, 0), REFUTES),
        ("fp64", (INF,), (INF,), (INF,), (INF,), DOES_NOT_TELL),
    ],
)
def test_range_is_told_from_rounding(recorded: str, fp64: Any, fp32: Any, bf16: Any, fp16: Any, expected: str) -> None:
    given = {"fp64": fp64, "fp32": fp32, "bf16": bf16, "fp16": fp16}
    found = {name: outcome(*each) for name, each in given.items()}
    assert range_and_arithmetic(recorded, found, [], None)[0].verdict == expected


@pytest.mark.parametrize(
    ("own", "fresh", "expected"),
    [
        ((0.1, 0.9), (1.0, 0.8), REFUTES),  # a healthy Adam: a fresh one steps further
        ((1.0, 0.9), (0.1, 0.8), REFUTES),  # a healthy momentum
        ((1.0, 2.0), (0.1, 0.8), SUPPORTS),
        ((1.0, 2.0), (0.1, 2.0), DOES_NOT_TELL),
        ((1.0, 2.0), (1.0, 2.0), REFUTES),
        ((1.0, NAN), (0.1, 0.8), SUPPORTS),
        ((NAN, NAN), (NAN, NAN), DOES_NOT_TELL),
    ],
)
def test_a_history_is_accused_of_harm_and_not_of_being_there(own: Any, fresh: Any, expected: str) -> None:
    steps = {f"{name} unclipped": Update(name, u[0], u[0], 1.0, u[1]) for name, u in (("own", own), ("no", fresh))}
    assert is_it_the_history(steps).verdict == expected


def with_count(captures: Sequence[Capture], executed: int, here: int) -> Capture:
    facts = {**captures[-1].facts, "executed_n": executed, "executed_in_segment": here}
    return replace(captures[-1], facts=facts)


@pytest.mark.parametrize(
    ("executed", "here", "expected"),
    [
        (5, 5, REFUTES),
        (305, 5, SUPPORTS),  # its state began with this segment
        (305, 2, REFUTES),  # it holds steps from before it: a run that went back to a checkpoint
        (305, 250, DOES_NOT_TELL),  # set back within the segment, by whatever
    ],
)
def test_a_history_is_lost_where_it_began_with_the_segment(
    record: Any, executed: int, here: int, expected: str
) -> None:
    model = build()
    captures = run(record, model, torch.optim.Adam(model.parameters()), batches(6))
    assert is_the_history_lost({}, with_count(captures, executed, here), None).verdict == expected


def test_an_optimizer_without_a_history_has_lost_none(record: Any) -> None:
    model = build()
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), batches(6), [2, 5])
    found = verdicts(Built(build(), of_pair), captures)
    assert found["verdicts"]["optimizer_lost"] == DOES_NOT_TELL
    assert found["verdicts"]["optimizer_history"] == REFUTES


def test_the_parameters_of_groups_get_their_own_states(record: Any) -> None:
    """Weights in one group and biases in the other, as most loops decay them: the step is the recorded one."""
    model = build()
    named = list(model.named_parameters())
    groups = [{"params": [p for name, p in named if kind in name]} for kind in ("weight", "bias")]
    optimizer = torch.optim.AdamW([{**groups[0], "weight_decay": 0.1}, groups[1]], lr=torch.tensor(0.01))
    captures = run(record, model, optimizer, batches(8))
    found = verdicts(Built(build(), of_pair), captures)
    assert found["updates_refused"] is None
    step = next(u for u in found["updates"] if u["label"] == "own history, unclipped")
    assert step["update_ratio"] == pytest.approx(record.column("update_ratio")[-1], rel=1e-4)


def test_an_optimizer_of_some_parameters_steps_those(record: Any) -> None:
    model = build()
    captures = run(record, model, torch.optim.Adam(model[2].parameters(), lr=0.01), batches(8))
    found = verdicts(Built(build(), of_pair), captures)
    assert found["verdicts"]["gradient"] == SUPPORTS
    step = next(u for u in found["updates"] if u["label"] == "own history, unclipped")
    assert step["update_norm"] == pytest.approx(record.column("update_norm")[-1], rel=1e-4)


def test_an_optimizer_that_only_has_the_name_of_torchs_is_not_taken_for_it(record: Any) -> None:
    model = build()
    named_alike = type("AdamW", (torch.optim.AdamW,), {})
    found = verdicts(Built(build(), of_pair), run(record, model, named_alike(model.parameters()), batches(3)))
    assert "none of torch.optim" in found["updates_refused"]
    assert found["reproduced"]["verdict"] == SUPPORTS


def test_the_gradient_of_an_accumulation_is_not_that_of_its_last_batch(record: Any) -> None:
    model = build()
    captures = run(record, model, torch.optim.Adam(model.parameters()), batches(8), micro_steps=4)
    found = verdicts(Built(build(), of_pair), captures)
    assert found["reproduced"]["verdict"] == SUPPORTS
    assert found["verdicts"]["gradient"] == REFUTES
    steps = ("optimizer_history", "optimizer_lost", "clipping")
    assert {found["verdicts"][name] for name in steps} == {DOES_NOT_TELL}


def test_a_batch_is_not_cleared_by_its_own_gradient_where_an_earlier_one_is_poisoned(record: Any) -> None:
    given = batches(8)
    given[5] = (given[5][0] * NAN, given[5][1])
    model = build()
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), given, micro_steps=4)
    found = verdicts(Built(build(), of_pair), captures)
    assert found["verdicts"].pop("gradient") == REFUTES
    assert set(found["verdicts"].values()) == {DOES_NOT_TELL}


def test_numbers_that_were_not_finite_before_the_forward_are_no_arithmetic(record: Any) -> None:
    given = batches(6)
    given[5] = (given[5][0] * NAN, given[5][1])
    model = build()
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), given)
    found = verdicts(Built(build(), of_pair), captures)
    assert found["verdicts"]["arithmetic"] == found["verdicts"]["numerical_range"] == DOES_NOT_TELL
    assert "the batch holds numbers that are not finite already" in found["outcomes"]["arithmetic"]
    assert found["verdicts"]["batch"] == SUPPORTS


def test_an_overflow_of_fp32_is_one_of_range_unless_the_loss_casts_to_it(record: Any) -> None:
    given = batches(6)
    given[5] = (given[5][0], given[5][1] * 1e25)
    model = build()
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), given)
    found = verdicts(Built(build(), of_pair), captures)
    assert found["verdicts"]["numerical_range"] == SUPPORTS
    assert found["verdicts"]["arithmetic"] == REFUTES
    cast = verdicts(Built(build(), lambda m, b: mse_loss(m(b[0]).float(), b[1].float())), captures)
    assert cast["verdicts"]["numerical_range"] == cast["verdicts"]["arithmetic"] == DOES_NOT_TELL
    assert "casts fp64 to float32" in cast["outcomes"]["arithmetic"]


def test_a_model_in_bf16_is_replayed_in_it_whatever_the_entry_builds(record: Any) -> None:
    model = build().bfloat16()
    given = [(x.bfloat16(), y.bfloat16()) for x, y in batches(5)]
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), given)
    found = verdicts(Built(build(), of_pair), captures)
    assert "to the last bit" in found["reproduced"]["outcome"]
    assert [p["label"] for p in found["precisions"]] == ["fp64", "fp32", "bf16", "fp16"]


def test_a_model_that_keeps_its_output_can_be_replayed(record: Any) -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = build()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept = self.inner(x)
            return self.kept

    model = Keeping()
    captures = run(record, model, torch.optim.Adam(model.parameters()), batches(4))
    found = verdicts(Built(Keeping(), of_pair), captures)
    assert len(found["precisions"]) == 4
    assert found["updates_refused"] is None


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda _m, _b: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda _m, _b: int("a\nb"), "ValueError"),
        (lambda _m, _b: 1.0, "must return a scalar tensor, not a float"),
        (lambda m, b: m(b[0]), r"not a tensor of shape \(8, 1\)"),
        (lambda m, b: of_pair(m, b).detach(), "without no_grad"),
        (lambda _m, b: of_pair(build(), b), "does not depend on the model"),
    ],
)
def test_a_loss_function_that_gives_no_loss_is_refused_in_one_line(record: Any, loss: Any, said: str) -> None:
    model = build()
    captures = run(record, model, torch.optim.SGD(model.parameters(), lr=0.01), batches(2))
    with pytest.raises(ReplayError, match=said) as error:
        result_of(Built(build(), loss), captures[-1], [])
    assert "\n" not in str(error.value)


def test_what_cannot_be_evaluated_is_said_and_costs_no_other_evaluation(record: Any) -> None:
    model = build()
    captures = run(record, model, torch.optim.Adam(model.parameters()), batches(6), [2, 5])
    smaller = {name: p for name, p in captures[0].contents["parameters"].items() if not name.startswith("2.")}
    captures[0] = replace(captures[0], contents={**captures[0].contents, "parameters": smaller, "batch": None})
    captures[1] = replace(captures[1], contents={**captures[1].contents, "earlier": []})
    found = verdicts(Built(build(), of_pair, fresh=lambda: [][1]), captures)
    assert len(found["not_evaluated"]) == 3
    assert found["verdicts"]["gradient"] == SUPPORTS
    assert sum(line.startswith("not evaluated: ") for line in lines({**found, "entry": ""})) == 3


ENTRIES = """
import sys
from torch import nn
from torch.nn.functional import mse_loss
def loss(model, batch): return mse_loss(model(batch[0]), batch[1])
def build(): return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), loss
def named(): return build()[0], "loss"
def leaves(): sys.exit(0)
def raises(): raise KeyError("x")
"""


@pytest.fixture
def stored(record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with captures at rows 2 and 5, beside the module `odd_entries`."""
    model = build()
    run(record, model, torch.optim.Adam(model.parameters()), batches(6), [2, 5])
    (tmp_path / "odd_entries.py").write_text(ENTRIES)
    (tmp_path / "odd_syntax.py").write_text("def (")
    monkeypatch.chdir(tmp_path)
    path: Path = record.path
    return path


@pytest.mark.parametrize(
    "entry",
    ["odd_entries:named", "odd_entries:leaves", "odd_entries:raises", "odd_entries:", "odd_syntax:x", "no.one:x"],
)
def test_an_entry_that_cannot_be_used_is_refused_in_one_line(stored: Path, entry: str) -> None:
    with pytest.raises(ReplayError) as error:
        replay(stored, 5, entry)
    assert "\n" not in str(error.value)


def test_a_module_that_is_not_there_is_not_said_to_be_called(stored: Path) -> None:
    with pytest.raises(ReplayError, match=r"package\.module of --entry cannot be imported"):
        replay(stored, 5, "package.module:build")
    with pytest.raises(ReplayError, match="odd_entries has no function buidl"):
        replay(stored, 5, "odd_entries:buidl")


def test_a_replay_leaves_the_generators_as_they_were(stored: Path) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]  # noqa: NPY002  # the global ones are what is looked at
    replay(stored, 5, "odd_entries:build")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]  # type: ignore[index]  # noqa: NPY002  # as above


def test_another_capture_that_is_damaged_is_left_out_and_told(stored: Path) -> None:
    (stored / "captures" / "row-000002" / "capture.json").write_text("{")
    result = replay(stored, 5, "odd_entries:build")
    assert result["reproduced"]["verdict"] == SUPPORTS
    assert ["row-000002" in line for line in result["not_evaluated"]] == [True]
    with pytest.raises(StoreError, match="row-000002"):
        replay(stored, 2, "odd_entries:build")


def alter(run: Path, place: Sequence[str], value: Any) -> None:
    """Put a value into the capture of row 5, as someone else might have written it."""
    path = run / "captures" / "row-000005" / "capture.json"
    document = json.loads(path.read_text())
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("facts", "row"), "5"),
        (("facts", "row"), 3),
        (("facts", "loss"), {"$float": 10**400}),
        (("facts", "precision"), "int4"),
        (("facts", "loss_scale"), "x"),
        (("version",), -1),
        (("contents", "batch"), {"$tensor": "../../secret"}),
        (("contents", "batch"), {"$items": [[[1], 2]]}),
        (("contents", "parameters", "\u001b[2J"), {"$tensor": "/batch/0"}),
        (("contents", "parameters", "0.weight"), 5),
        (("contents", "parameters"), {"$left_out": "Mapping"}),
        (("contents", "batch"), {"$left_out": "Pair"}),
        (("contents", "rng", "python"), [1]),
        (("contents", "layouts"), {"optimizer": 5}),
        (("contents", "layouts", "optimizer", "groups"), [[["a"]]]),
        (("contents", "optimizers", "optimizer"), {"state": 5, "param_groups": []}),
    ],
)
def test_a_capture_that_someone_else_wrote_is_refused_in_one_line(stored: Path, place: Any, value: Any) -> None:
    alter(stored, place, value)
    with pytest.raises((ReplayError, StoreError)) as error:
        replay(stored, 5, "odd_entries:build")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("facts", "loss_scale"), {"$float": "nan"}),
        (("facts", "loss_scale"), 0),
        (("facts", "max_norm"), {"$float": "nan"}),
        (("facts", "batch_id"), "\u001b]0;a title\u0007\n\ud800"),
        (("contents", "earlier"), [1, {"batch": None, "row": "\u001b[2J"}, {"batch": None, "row": [2]}]),
        (("contents", "buffers"), {"$left_out": "Mapping"}),
        (("contents", "rng"), {"$left_out": "Mapping"}),
        (("contents", "layouts", "optimizer", "class"), "torch.optim.os"),
        (("contents", "layouts", "optimizer", "groups"), [["of no such name"]]),
        (("contents", "optimizers", "optimizer", "state"), {"$items": [[0, {"step": "text"}]]}),
    ],
)
def test_what_is_odd_in_a_capture_costs_only_what_rests_on_it(stored: Path, place: Any, value: Any) -> None:
    alter(stored, place, value)
    result = replay(stored, 5, "odd_entries:build")
    assert result["reproduced"]["verdict"] == SUPPORTS
    assert all(line.isprintable() for line in lines(result) for line in line.split("\n"))
