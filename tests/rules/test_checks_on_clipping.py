"""The checks on clipping, on real loops that clip wrongly and on the nearest that do not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from recorder import FlightRecorder  # noqa: E402  # after the skip
from spikeview.format import number  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, Step, check, plain, record  # noqa: E402  # after the skip

FAILED, PASSED, NOT_APPLICABLE, CANNOT_TELL = (
    Outcome.FAILED,
    Outcome.PASSED,
    Outcome.NOT_APPLICABLE,
    Outcome.CANNOT_TELL,
)


def clip_after(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
    loop.optimizer.zero_grad()
    loss = loop.loss(x, y)
    t.observe_loss(loss)
    loss.backward()
    loop.optimizer.step()
    t.clip_grad_norm_()


def own_clip(limit: float) -> Step:
    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        t.observe_loss(loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(loop.model.parameters(), limit)
        loop.optimizer.step()

    return step


def unclipped(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
    loop.optimizer.zero_grad()
    loss = loop.loss(x, y)
    t.observe_loss(loss)
    loss.backward()
    t.measure_grad_norm()
    loop.optimizer.step()


def test_clipping_after_the_step(tmp_path: Path) -> None:
    late = check(record(tmp_path / "late", clip_after, 40, max_norm=1.0), "clip_after_step")
    assert late.outcome is FAILED
    assert late.evidence.startswith("max_norm 1 was set, and none of 40 executed steps was clipped before")
    assert "lower max_norm" in late.next
    assert check(record(tmp_path / "right", rows=40, max_norm=1.0), "clip_after_step").outcome is PASSED
    assert check(record(tmp_path / "none", unclipped, 40), "clip_after_step").outcome is NOT_APPLICABLE
    own = check(record(tmp_path / "own", own_clip(1.0), 40), "clip_after_step")
    assert (own.outcome, own.missing) == (CANNOT_TELL, ("max_norm",)), "its clipping is told to nobody"


def accumulate(every: bool) -> Step:
    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        if row % 4 == 0:
            loop.optimizer.zero_grad()
        loss = loop.loss(x, y) / 4
        t.observe_loss(loss)
        loss.backward()
        if every or row % 4 == 3:
            t.clip_grad_norm_()
        if row % 4 == 3:
            loop.optimizer.step()

    return step


def test_clipping_each_micro_batch(tmp_path: Path) -> None:
    told = {"accumulating": lambda row: row % 4 != 3, "max_norm": 0.5, "rows": 80}
    each = check(record(tmp_path / "each", accumulate(True), **told), "clip_per_microbatch")
    assert each.outcome is FAILED
    assert each.evidence.startswith(
        "clipped on 60 micro-steps before the last of its step, at rows 0, 1, 2, 4, 5, 6 and"
    )
    once = check(record(tmp_path / "once", accumulate(False), **told), "clip_per_microbatch")
    assert (once.outcome, once.evidence) == (PASSED, "no clipping on 60 micro-steps before the last")
    undeclared = {**told, "accumulating": lambda row: False}
    assert check(record(tmp_path / "silent", accumulate(True), **undeclared), "clip_per_microbatch").outcome is FAILED
    whole = record(tmp_path / "whole", rows=40, max_norm=0.5)
    assert check(whole, "clip_per_microbatch").outcome is NOT_APPLICABLE


def test_a_row_that_an_exception_ended_is_no_micro_batch(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    with FlightRecorder(tmp_path, model, optimizer, max_norm=0.5) as recorder:
        for row in range(40):
            with suppress(MemoryError), recorder.transition(batch_id=row) as t:
                optimizer.zero_grad()
                model(torch.randn(4, 8)).square().mean().backward()
                t.clip_grad_norm_()
                if row in (12, 30):
                    raise MemoryError
                optimizer.step()
    run = open_run(tmp_path)
    assert run.values("attempted").tolist().count(False) == 2
    assert check(run, "clip_per_microbatch").outcome is NOT_APPLICABLE


def test_micro_batches_within_one_row_are_seen_by_the_factor_and_not_called_a_fault(tmp_path: Path) -> None:
    def within(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        for half, target in zip(x.chunk(2), y.chunk(2), strict=True):
            loop.loss(half, target).backward()
            t.clip_grad_norm_()
        loop.optimizer.step()

    told = check(record(tmp_path, within, 40, max_norm=0.5), "clip_per_microbatch")
    assert (told.outcome, told.missing) == (CANNOT_TELL, ("micro_step",))
    assert told.evidence.startswith("clipped more than once within rows 0 to 39")


def test_a_limit_that_cuts_every_row_and_one_that_cuts_some(tmp_path: Path) -> None:
    tight = check(record(tmp_path / "tight", rows=120, max_norm=0.01), "always_clipping")
    assert tight.outcome is FAILED
    assert tight.evidence.startswith("120 of 120 rows clipped; median coefficient 0.00")
    free = record(tmp_path / "free", unclipped, 120)
    limit = float(sorted(free.values("grad_norm"))[48])  # 60 % of the norms lie over it
    some = check(record(tmp_path / "some", rows=120, max_norm=limit), "always_clipping")
    assert some.outcome is PASSED
    assert check(free, "always_clipping").outcome is NOT_APPLICABLE
    few = check(record(tmp_path / "few", rows=30, max_norm=0.01), "always_clipping")
    assert (few.outcome, few.evidence) == (CANNOT_TELL, "30 clipped rows of the 50 it takes")


def test_a_limit_that_nobody_recorded_shows_in_the_norms(tmp_path: Path) -> None:
    free = record(tmp_path / "free", unclipped)
    assert check(free, "norm_logged_after_clip").outcome is NOT_APPLICABLE
    limit = float(np.median(free.values("grad_norm")))
    own = check(record(tmp_path / "own", own_clip(limit)), "norm_logged_after_clip")
    assert own.outcome is FAILED
    assert own.evidence.startswith(f"the norm ends at {number(limit)} on ")
    always = check(record(tmp_path / "always", own_clip(0.01)), "norm_logged_after_clip")
    assert (always.outcome, always.missing) == (CANNOT_TELL, ("max_norm",)), "a gradient may always be as large"


def test_a_step_as_it_should_be_fails_no_check(tmp_path: Path) -> None:
    found = diagnose(record(tmp_path, plain, 600, max_norm=3.0, noise=0.5))
    assert [each.id for each in found.checks if each.outcome is FAILED] == []
