"""Loops of which it takes more than one column to say whether something is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from recorder import FlightRecorder  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.run import Run  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, mlp, plain, record  # noqa: E402  # after the skip


def onsets(run: Run) -> list[tuple[int, str]]:
    firsts = [each.incident.first_bad for each in diagnose(run).incidents]
    return [(first.position, first.signal) for first in firsts]


def freezes(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
    """From row 80 on the first layer is no part of the backward any more."""
    if row < 80:
        plain(loop, t, row, x, y)
        return
    with torch.no_grad():
        hidden = loop.model[:2](x)
    loop.optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(loop.model[2](hidden), y)
    t.observe_loss(loss)
    loss.backward()
    t.clip_grad_norm_()
    loop.optimizer.step()


def test_layers_that_are_frozen_are_no_alarm_and_are_told_with_the_row(tmp_path: Path) -> None:
    [diagnosed] = diagnose(record(tmp_path / "run", freezes)).incidents
    assert (diagnosed.incident.first_bad.position, diagnosed.incident.severity) == (80, "warning")
    assert diagnosed.findings[0].id == "executed_not_moved"
    assert "0 to 2 at row 80: those stopped receiving one" in diagnosed.findings[0].evidence
    assert "if layers were frozen there on purpose, nothing is wrong" in diagnosed.findings[0].evidence


def overflowing(factors: dict[int, float], broken: int | None = None) -> Any:
    """A step under a scaler, at an ordinary loss: gradients of some rows are so many times themselves, of one NaN."""

    def step(loop: Loop, t: Any, at: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        t.observe_loss(loss)
        loss = loss + (factors.get(at, 1.0) - 1) * (loss - loss.detach())
        if at == broken:
            loss = loss + (0 * loop.model(x)).sqrt().sum()
        loop.scaler.scale(loss).backward()
        t.clip_grad_norm_()
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()

    return step


def under_scale(path: Path, scale: float, factors: dict[int, float], broken: int | None = None) -> Run:
    """Recorded under a loss scale that leaves fp32 so much room as another does fp16."""
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return record(path, overflowing(factors, broken), 200, scaler=scaler, noise=10.0)


def test_a_skip_by_a_gradient_far_over_any_that_passed_at_that_scale_is_an_incident(tmp_path: Path) -> None:
    run = under_scale(tmp_path / "run", 2.0**121, {100: 100.0})
    assert np.flatnonzero(~run.values("executed")).tolist() == [100]
    assert onsets(run) == [(100, "grad_norm")]


def test_a_skip_at_a_scale_that_the_largest_gradients_hardly_pass_is_calibration(tmp_path: Path) -> None:
    run = under_scale(tmp_path / "run", 2.0**125, {})
    skips = np.flatnonzero(~run.values("executed"))
    assert len(skips) == 2, "a first one, and a late one at half of its scale"
    assert skips[1] > 24
    assert onsets(run) == []


def test_two_skips_in_a_row_while_the_scale_is_found_are_judged_by_how_many_parameters_overflowed(
    tmp_path: Path,
) -> None:
    slightly = under_scale(tmp_path / "slightly", 2.0**121, {15: 20.0, 16: 40.0})
    assert np.flatnonzero(~slightly.values("executed")).tolist() == [15, 16]
    assert onsets(slightly) == []
    far = under_scale(tmp_path / "far", 2.0**121, {15: 100.0, 16: 200.0})
    assert onsets(far) == [(15, "grad_norm")]


def test_a_nan_of_the_backward_shortly_after_a_skip_of_the_search_is_an_incident(tmp_path: Path) -> None:
    run = under_scale(tmp_path / "run", 2.0**121, {15: 20.0}, broken=33)
    assert np.flatnonzero(~run.values("executed")).tolist() == [15, 33]
    assert onsets(run) == [(33, "grad_norm")]


def resumed(path: Path, whole: bool, factor: float) -> Run:
    """The same batch again and again, a resume at row 60, and a first update after it that is so many times itself."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model, x = mlp(), torch.randn(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for segment in range(2):
        with FlightRecorder(path, model, optimizer, deep_every=0, resume=segment > 0) as recorder:
            if segment and whole:
                recorder.resumed("last.pt", restored=["model", "optimizer"])
            for row in range(60):
                with recorder.transition(batch_id=row) as t:
                    optimizer.zero_grad()
                    loss = model(x).square().mean()
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_(100.0)
                    for parameter in model.parameters():
                        parameter.grad *= factor if segment and not row else 1.0
                    optimizer.step()
            recorder.checkpoint("last.pt")
    return open_run(path)


def test_the_first_update_after_a_resume_is_judged_as_any_where_the_optimizer_came_back(tmp_path: Path) -> None:
    assert onsets(resumed(tmp_path / "whole", whole=True, factor=1.8)) == []
    assert onsets(resumed(tmp_path / "untold", whole=False, factor=1.8)) == [(60, "update_ratio")]
    assert onsets(resumed(tmp_path / "far", whole=True, factor=4.0)) == [(60, "update_ratio")]
