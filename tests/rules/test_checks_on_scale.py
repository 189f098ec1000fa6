"""The checks on the loss scale and on half precision, on real scalers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, Step, check, record  # noqa: E402  # after the skip

FAILED, PASSED, NOT_APPLICABLE, CANNOT_TELL = (
    Outcome.FAILED,
    Outcome.PASSED,
    Outcome.NOT_APPLICABLE,
    Outcome.CANNOT_TELL,
)


def amp(of: Callable[[int, Any], Any] = lambda row, x: x, broken: Callable[[Loop, int], None] | None = None) -> Step:
    """A step in fp16 under a scaler. `of` gives the inputs, `broken` acts once the gradients are unscaled."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            predicted = loop.model(of(row, x))
        loss = torch.nn.functional.mse_loss(predicted.float(), y)
        t.observe_loss(loss)
        loop.scaler.scale(loss).backward()
        t.clip_grad_norm_()
        if broken is not None:
            broken(loop, row)
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()

    return step


def scaler(scale: float = 2.0**10, interval: int = 2000) -> Any:
    return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)


def test_a_scale_that_finds_its_level_and_one_that_falls_for_good(tmp_path: Path) -> None:
    level = record(tmp_path / "level", amp(), 60, scaler=scaler(2.0**24), max_norm=1.0)
    assert level.values("loss_scale").min() < 2.0**17, "it had to come down to a level"
    assert check(level, "scale_collapse").outcome is PASSED

    def poisoned(row: int, x: Any) -> Any:
        return x * float("nan") if row >= 20 else x

    fallen = check(record(tmp_path / "fallen", amp(poisoned), 45, scaler=scaler(), max_norm=1.0), "scale_collapse")
    assert fallen.outcome is FAILED
    assert fallen.evidence == "the loss scale fell from 1024 at row 0 to 6.104e-05 at row 44"
    assert fallen.rows[0] == 31, "the first row with a scale under 1"
    once = record(tmp_path / "once", amp(lambda row, x: x * 1e6 if row == 20 else x), 45, scaler=scaler(), max_norm=1.0)
    assert once.values("loss_scale").min() == 512
    assert check(once, "scale_collapse").outcome is PASSED


def test_a_scale_that_swings_and_one_that_knocks_at_its_ceiling(tmp_path: Path) -> None:
    def hard(row: int, x: Any) -> Any:
        """Every thirtieth row and the three after it have outputs that fp16 cannot hold at an ordinary scale."""
        return x * 3e4 if row % 30 >= 26 else x

    swings = record(tmp_path / "swings", amp(hard), 240, scaler=scaler(2.0**14, 6), max_norm=1.0)
    found = check(swings, "scale_oscillation")
    assert found.outcome is FAILED
    assert "the scale grew" in found.evidence and "from about" in found.evidence
    knocks = record(tmp_path / "knocks", amp(), 240, scaler=scaler(2.0**16, 12), max_norm=1.0)
    grown = check(knocks, "scale_oscillation")
    assert grown.outcome is PASSED
    assert int(grown.evidence.split()[3]) > 8, "it has to knock often for this to say anything"
    assert check(record(tmp_path / "fp32", rows=20), "scale_oscillation").outcome is NOT_APPLICABLE


def test_a_nan_made_after_the_scaler_had_looked(tmp_path: Path) -> None:
    def poison(loop: Loop, row: int) -> None:
        if row == 30:
            next(loop.model.parameters()).grad[0, 0] = float("nan")

    late = check(record(tmp_path / "late", amp(broken=poison), 40, scaler=scaler(), max_norm=1.0), "nan_after_unscale")
    assert (late.outcome, late.rows, late.severity) == (FAILED, (30,), "critical")

    def in_time(row: int, x: Any) -> Any:
        return x * float("nan") if row == 30 else x

    seen = record(tmp_path / "seen", amp(in_time), 40, scaler=scaler(), max_norm=1.0)
    assert not seen.values("executed")[30], "the scaler skips what it sees"
    assert check(seen, "nan_after_unscale").outcome is PASSED
    assert check(record(tmp_path / "fp32", rows=20), "nan_after_unscale").outcome is NOT_APPLICABLE


def test_an_autocast_that_does_not_reach_the_model(tmp_path: Path) -> None:
    def elsewhere(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        with torch.autocast(
            "cpu", dtype=torch.bfloat16, enabled=False
        ):  # what autocast of another device is to this one
            loss = loop.loss(x, y)
        t.observe_loss(loss)
        loss.backward()
        t.clip_grad_norm_()
        loop.optimizer.step()

    asked = {"config": {"trainer": {"precision": "bf16-mixed"}}, "max_norm": 1.0}
    missed = check(record(tmp_path / "missed", elsewhere, 20, **asked), "autocast_device_mismatch")
    assert missed.outcome is FAILED
    assert missed.evidence.startswith("the settings ask for bf16, and the forward ran in fp32 on cpu")
    flag = {"config": {"fp16": True, "bf16": False}, "max_norm": 1.0, "scaler": scaler()}
    assert check(record(tmp_path / "fp16", amp(), 20, **flag), "autocast_device_mismatch").outcome is PASSED
    alone = {"scaler": scaler(), "max_norm": 1.0}

    def unasked(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        loop.scaler.scale(loss).backward()
        t.clip_grad_norm_()
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()

    untold = check(record(tmp_path / "alone", unasked, 20, **alone), "autocast_device_mismatch")
    assert (untold.outcome, untold.missing) == (CANNOT_TELL, ("config",))
    plain = check(record(tmp_path / "fp32", rows=20), "autocast_device_mismatch")
    assert plain.outcome is NOT_APPLICABLE


def test_an_untold_clipping_of_scaled_gradients_shows_where_the_scale_moves(tmp_path: Path) -> None:
    def own_clip(unscaled: bool) -> Step:
        def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
            loop.optimizer.zero_grad()
            loss = loop.loss(x, y)
            t.observe_loss(loss)
            loop.scaler.scale(loss).backward()
            if unscaled:
                loop.scaler.unscale_(loop.optimizer)
            torch.nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)
            loop.scaler.step(loop.optimizer)
            loop.scaler.update()

        return step

    early = check(record(tmp_path / "early", own_clip(False), 80, scaler=scaler(interval=20)), "clip_before_unscale")
    assert early.outcome is FAILED
    assert early.evidence.startswith("the norm times the loss scale ends at 1")
    right = check(record(tmp_path / "right", own_clip(True), 80, scaler=scaler(interval=20)), "clip_before_unscale")
    assert (right.outcome, right.missing) == (CANNOT_TELL, ("grad_norm_source", "clip_coef"))
