"""What a signal does again and again is no news; the first time is, and so is anything that goes farther."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spikeview.analysis.episodes import incidents
from spikeview.analysis.observations import observe
from spikeview.run import Floats
from tests.analysis.series import healthy, run_of

ROWS = 1500
Generator = np.random.Generator

# Healthy losses that no band of medians holds, and how many incidents in ROWS rows may come of the rows before the
# habit shows.
HEAVY: dict[str, tuple[Callable[[Generator], Floats], int]] = {
    "two data sets": (lambda r: np.where(r.random(ROWS) < 0.1, 4.0, 2.0) * np.exp(0.03 * r.standard_normal(ROWS)), 4),
    "one row in a hundred": (
        lambda r: np.where(r.random(ROWS) < 0.01, 3, 2) * np.exp(0.05 * r.standard_normal(ROWS)),
        8,
    ),
    "few values, many zeros": (lambda r: r.binomial(8, 0.1, ROWS) / 8.0, 5),
    "heavy tail": (lambda r: 2 * np.exp(0.05 * r.standard_t(3, ROWS)), 6),
    "epochs": (lambda r: (2 - 0.003 * (np.arange(ROWS) % 100)) * np.exp(0.02 * r.standard_normal(ROWS)), 2),
}


def onsets(loss: Floats) -> list[int]:
    run = run_of({**healthy(len(loss)), "loss": list(loss)})
    return [incident.first_bad.position for incident in incidents(run, observe(run).observed)]


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_heavy_tail_soon_falls_silent(name: str, seed: int) -> None:
    draw, few = HEAVY[name]
    assert len(onsets(draw(np.random.default_rng(1000 + seed)))) <= few


def test_three_spikes_are_news_and_a_fourth_like_them_is_not_unless_it_goes_farther() -> None:
    loss = 2 * np.exp(0.05 * np.random.default_rng(0).standard_normal(600))
    loss[[200, 250, 300, 350]] = 20.0
    assert onsets(loss) == [200, 250, 300]
    loss[400] = 200.0
    assert onsets(loss) == [200, 250, 300, 400]
    run = run_of({**healthy(600), "loss": list(loss)})
    assert np.flatnonzero(observe(run).baselines["loss"].habitual).tolist() == [350]


def test_a_loss_that_stays_up_is_no_habit_however_long() -> None:
    loss = 2 * np.exp(0.05 * np.random.default_rng(0).standard_normal(1200))
    loss[300:900] *= 10
    loss[1000] = 20.0
    assert onsets(loss) == [300, 1000]


def test_values_as_large_as_a_float_can_hold_are_judged_without_a_warning() -> None:
    loss = np.where(np.arange(300) % 2, 1.7e308, -1.7e308)
    assert onsets(loss) == []
    loss = -np.ones(300)
    loss[200] = 1.7e308
    assert onsets(loss) == [200]


def test_a_loss_that_is_held_up_and_leaves_its_band_again_and_again_is_one_incident() -> None:
    loss = 2 * np.exp(0.05 * np.random.default_rng(0).standard_normal(400))
    loss[200] = 20.0
    loss[201:300] *= 1.27  # past the band, and not past the threshold
    loss[215:300:15] = 3.0
    assert onsets(loss) == [200]
    loss[201:300] /= 1.27
    loss[215:300:15] = 3.0
    assert len(onsets(loss)) > 1, "back in its band in between"
