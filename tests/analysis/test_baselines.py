"""What a plain rolling median and MAD gets wrong, and what must stay quiet."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import median_abs_deviation
from torch import nn

from spikeview.analysis.episodes import incidents
from spikeview.analysis.incident import Incident
from spikeview.analysis.observations import observe
from spikeview.run import Run
from tests.analysis.series import healthy, run_of


def found(run: Run) -> tuple[Incident, ...]:
    return incidents(run, observe(run).observed)


def test_a_jump_that_stays_under_the_losses_of_long_ago_is_found() -> None:
    columns = healthy(300)
    falling = 20 * np.exp(-np.arange(300) / 50) * np.exp(0.05 * np.random.default_rng(1).standard_normal(300))
    columns["loss"] = list(falling)
    columns["loss"][299] = 8.5
    [incident] = found(run_of(columns))
    assert columns["loss"][298] == pytest.approx(0.05, rel=0.2)
    logs = np.log(columns["loss"][99:299])
    assert (np.log(8.5) - np.median(logs)) / median_abs_deviation(logs, scale="normal") < 5
    assert (incident.first_bad.position, incident.first_bad.signal) == (299, "loss")
    assert incident.first_bad.deviation is not None
    assert incident.first_bad.deviation > 15


def test_a_loss_that_goes_from_2_1_to_2_9_in_one_step_is_found() -> None:
    columns = healthy(400)
    columns["loss"] = list(2.1 + 0.02 * np.random.default_rng(1).standard_normal(400))
    columns["loss"][300] = 2.9
    [incident] = found(run_of(columns))
    assert (incident.first_bad.position, incident.last_healthy, incident.last) == (300, 299, 300)


def test_constant_signals_are_quiet_and_rounding_in_them_too() -> None:
    columns = healthy(500)
    for name, value in (("loss", 0.7), ("grad_norm", 2.0), ("update_ratio", 1e-3), ("update_cosine", 1.0)):
        columns[name] = [value] * 500
    assert found(run_of(columns)) == ()
    columns["update_cosine"][250:252] = [0.9999, 0.9998]
    columns["loss"][250] = 0.7001
    assert found(run_of(columns)) == ()


def test_few_rows_give_no_verdict_except_on_what_is_not_finite() -> None:
    early = {"row": [0, 1, 2, 3], "loss": [1.0, 1.0, 1.0, 50.0], "executed": [True] * 4, "attempted": [True] * 4}
    assert found(run_of(early)) == ()
    early["loss"][1] = float("nan")
    [incident] = found(run_of(early))
    assert (incident.first_bad.position, incident.first_bad.reason) == (1, "nonfinite")


def test_bad_rows_stay_out_of_the_baseline_however_many() -> None:
    columns = healthy(600)
    columns["loss"][300:500] = [80.0] * 200
    run = run_of(columns)
    [incident] = found(run)
    assert (incident.first_bad.position, incident.last, incident.persistence) == (300, 499, "persistent")
    center = observe(run).baselines["loss"].center
    assert np.all(center[300:500] == center[300])
    assert center[505] < 1.0


def test_a_loss_that_never_comes_back_diverged_and_one_that_does_was_transient() -> None:
    columns = healthy(400)
    columns["loss"][350:] = [90.0] * 50
    [incident] = found(run_of(columns))
    assert (incident.persistence, incident.severity) == ("diverged", "critical")
    columns = healthy(400)
    columns["loss"][350] = 90.0
    [incident] = found(run_of(columns))
    assert (incident.persistence, incident.severity) == ("transient", "warning")


def test_the_onset_of_a_second_spike_is_not_hidden_by_the_first() -> None:
    columns = healthy(400)
    columns["loss"][300:309] = [60.0] * 9
    columns["loss"][320] = 30.0
    assert [incident.first_bad.position for incident in found(run_of(columns))] == [300, 320]


def test_an_update_grows_with_its_learning_rate_without_being_an_observation() -> None:
    columns = healthy(400)
    columns["lr"] = [1e-4 * min(1 + row / 20, 10) for row in range(400)]
    columns["update_ratio"] = [1e-3 * rate / 1e-4 for rate in columns["lr"]]
    assert found(run_of(columns)) == ()
    columns["update_ratio"][200] *= 8
    [incident] = found(run_of(columns))
    assert (incident.first_bad.position, incident.first_bad.signal) == (200, "update_ratio")


def test_a_loss_that_is_not_positive_is_judged_on_a_linear_scale() -> None:
    columns = healthy(300)
    columns["loss"] = list(-3 + 0.1 * np.random.default_rng(2).standard_normal(300))
    assert found(run_of(columns)) == ()
    columns["loss"][200] = 4.0
    [incident] = found(run_of(columns))
    assert incident.first_bad.position == 200


def test_what_left_before_the_loss_is_its_lead() -> None:
    columns = healthy(400)
    columns["update_ratio"][300] = 1.0
    columns["grad_norm"][302] = 1e4
    columns["loss"][303] = 70.0
    [incident] = found(run_of(columns))
    assert [(lead.signal, lead.row, lead.rows_ahead) for lead in incident.lead] == [
        ("update_ratio", 300, 3),
        ("grad_norm", 302, 1),
    ]


def test_observations_come_in_causal_order() -> None:
    columns = healthy(400)
    columns["update_ratio"][300], columns["grad_norm"][300], columns["loss"][300] = 1.0, 1e4, 70.0
    [incident] = found(run_of(columns))
    assert [seen.signal for seen in incident.observations] == ["loss", "grad_norm", "update_ratio"]


def test_one_opposed_update_is_ordinary_and_two_in_a_row_are_not_unless_the_gradient_vanishes() -> None:
    columns = healthy(400)
    columns["update_cosine"][300] = -0.4
    assert found(run_of(columns)) == ()
    columns["update_cosine"][301] = -0.4
    columns["grad_norm"][299:302] = [1.0, 1.0, 1.0]
    [incident] = found(run_of(columns))
    assert (incident.first_bad.position, incident.first_bad.signal) == (300, "update_cosine")
    columns["grad_norm"][300:302] = [0.05, 0.05]
    assert found(run_of(columns)) == ()


def test_micro_steps_before_an_update_feed_the_baseline_and_skipped_rows_do_not() -> None:
    columns = healthy(400)
    for row in range(400):
        if row % 4 != 3:
            columns["attempted"][row] = columns["executed"][row] = False
            columns["skip_reason"][row] = "accumulating"
            for name in ("grad_norm", "moved", "update_ratio", "update_cosine", "update_norm"):
                columns[name][row] = None
    run = run_of(columns)
    assert found(run) == ()
    assert np.isfinite(observe(run).baselines["loss"].center[10])


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("seed", range(7))
def test_healthy_small_batch_training_has_no_incident(optimizer: str, seed: int) -> None:
    assert found(trained(optimizer, seed, rows=600)) == ()


def trained(name: str, seed: int, rows: int) -> Run:
    """A real loop at batch size 4, recorded by hand: the columns that carry signals."""
    torch.manual_seed(seed)
    truth = torch.randn(8, 1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    parameters = list(model.parameters())
    optimizer = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=1e-2),
        "adam": lambda: torch.optim.Adam(parameters, lr=1e-3),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=1e-3),
    }[name]()
    seen: dict[str, list[float]] = {"loss": [], "grad_norm": [], "update_ratio": [], "update_cosine": []}
    for _ in range(rows):
        x = torch.randn(4, 8)
        loss = nn.functional.mse_loss(model(x), x @ truth + 0.1 * torch.randn(4, 1))
        optimizer.zero_grad()
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
        before = torch.cat([p.detach().flatten() for p in parameters])
        optimizer.step()
        change = torch.cat([p.detach().flatten() for p in parameters]) - before
        seen["loss"].append(loss.item())
        seen["grad_norm"].append(gradient.norm().item())
        seen["update_ratio"].append((change.norm() / before.norm()).item())
        seen["update_cosine"].append((-change @ gradient / (change.norm() * gradient.norm())).item())
    known = {"row": range(rows), "attempted": [True] * rows, "executed": [True] * rows, "moved": [True] * rows}
    return run_of({**known, "lr": [optimizer.param_groups[0]["lr"]] * rows, **seen})
