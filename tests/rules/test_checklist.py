"""The common mistakes and the list before a launch, on real loops and on what their manifests say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from spikeview.rules.checklist import Item, checklist  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.run import Run  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, mlp, record  # noqa: E402  # after the skip


def items(run: Run) -> dict[str, Item]:
    return {item.id: item for item in checklist(diagnose(run))}


def answers(run: Run, *ids: str) -> list[str]:
    found = items(run)
    return [found[id].word for id in ids]


def half(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
    loop.optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = loop.model(x)
    loss = torch.nn.functional.mse_loss(predicted.float(), y)
    t.observe_loss(loss)
    loss.backward()
    t.clip_grad_norm_()
    loop.optimizer.step()


def told(loop: Loop) -> None:
    loop.recorder.checkpoint("last.pt")
    loop.recorder.validation(0.25)


def test_a_plain_run_says_what_it_can_and_no_more(tmp_path: Path) -> None:
    found = items(record(tmp_path, rows=60, max_norm=1.0, after=told))
    assert found["parameters_in_fp16"].evidence == "parameters in float32"
    assert found["validation_monitored"].word == "yes"
    assert found["checkpoints_complete"].word == "cannot tell"
    assert found["checkpoints_complete"].evidence.startswith("1 checkpoint noted; what a checkpoint holds")
    assert [found[id].word for id in ("clipped_in_order", "raw_norms_logged", "nonfinite_monitored")] == ["yes"] * 3
    assert found["every_spike_a_divergence"].word == "not present"
    assert found["extreme_inputs_tested"].missing == ("input_absmax",)


def test_half_precision_without_a_loss_scale_is_a_no(tmp_path: Path) -> None:
    run = record(tmp_path, half, 60, max_norm=1.0)
    assert answers(run, "scaler_configured", "autocast_used", "trusting_bf16") == ["no", "yes", "not applicable"]


def test_parameters_that_were_converted_are_seen_by_their_type(tmp_path: Path) -> None:
    def converted(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x.bfloat16(), y.bfloat16())
        t.observe_loss(loss)
        loss.backward()
        t.clip_grad_norm_()
        loop.optimizer.step()

    run = record(tmp_path, converted, 40, max_norm=1.0, model=lambda: mlp().bfloat16())
    assert answers(run, "parameters_in_fp16", "autocast_used") == ["not present", "not applicable"]
    dtypes = {**run.manifest, "model": {"dtypes": {"float16": 4}}}
    fp16 = Run(run.path, run.table, dtypes, run.events, run.layers)
    assert answers(fp16, "parameters_in_fp16", "autocast_used") == ["present", "no"]
    assert answers(Run(run.path, run.table, {}), "parameters_in_fp16") == ["cannot tell"]
