"""Parameters that change outside of the optimizer's steps: their norms prove it, and no batch is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from spikeview.rules.diagnosis import diagnose
from spikeview.rules.finding import Verdict
from tests.rules.recorded import Loop, plain, record, torch


@pytest.mark.parametrize("spoilt", [True, False], ids=["weights spoilt after the step", "an outlier in the batch"])
def test_weights_that_change_between_two_steps(tmp_path: Path, spoilt: bool) -> None:
    def step(loop: Loop, t: object, row: int, x: object, y: object) -> None:
        plain(loop, t, row, x, y if spoilt or row != 91 else y * 100)
        if spoilt and row == 90:
            with torch.no_grad():
                for parameter in loop.model.parameters():
                    parameter.mul_(50)

    diagnosis = diagnose(record(tmp_path, step, rows=120, max_norm=1.0))
    incident = diagnosis.incidents[0]
    assert incident.incident.first_bad.position == 91
    verdicts = {finding.id: finding.verdict for finding in incident.findings}
    evidence = next(finding.evidence for finding in incident.findings if finding.id == "ordinary_grad_abnormal_update")
    assert (verdicts["ordinary_grad_abnormal_update"] is Verdict.MATCHED) == spoilt
    assert (verdicts["loss_spike_clean_transition"] is Verdict.MATCHED) == (not spoilt)
    assert ("changed outside" in evidence) == spoilt
