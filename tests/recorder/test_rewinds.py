"""Real loops that go back to a checkpoint, in a new process' segment or within one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the recorder's tests need the extra [torch]")

from spikeview.importers import open_run  # noqa: E402  # after the skip


def trained(recorder: Any, model: Any, optimizer: Any, steps: range, numbered: bool) -> None:
    for step in steps:
        with recorder.transition(batch_id=step, step=step if numbered else None) as t:
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8, device=next(model.parameters()).device)).square().mean()
            t.observe_loss(loss)
            loss.backward()
            t.clip_grad_norm_()
            optimizer.step()


@pytest.mark.parametrize("numbered", [True, False], ids=["its own steps", "counted attempts"])
@pytest.mark.parametrize("resume", [True, False], ids=["a new segment", "within a segment"])
def test_a_loop_that_goes_back_to_its_checkpoint_has_abandoned_what_came_after(
    record: Any, mlp: Any, numbered: bool, resume: bool
) -> None:
    """Where the loop numbers its steps they fall; where the attempts are counted, the checkpoint alone tells."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recorder = record(model, optimizer)
    trained(recorder, model, optimizer, range(6), numbered)
    saved = copy.deepcopy(model.state_dict())
    recorder.checkpoint("good")
    trained(recorder, model, optimizer, range(6, 10), numbered)
    if resume:
        recorder.close()
        recorder = record(model, optimizer, resume=True)
    model.load_state_dict(saved)
    recorder.resumed("good", restored=["model", "optimizer"])
    trained(recorder, model, optimizer, range(6, 9), numbered)
    recorder.close()
    run = open_run(record.path)
    assert run.abandoned.tolist() == [False] * 6 + [True] * 4 + [False] * 3
    steps = run.values("step").tolist()
    assert steps == ([*range(10), *range(6, 9)] if numbered else [*range(13)])
    [note] = [note for note in run.notes if "abandoned" in note]
    assert note == (
        "rows 6 to 9 (steps 6 to 9) were abandoned: "
        f"the run went back to checkpoint good, at step {6 if numbered else 10}"
    )
