"""A level that rises slowly is seen, from about where it began; a level that comes and goes by itself is not."""

from __future__ import annotations

import numpy as np
import pytest

from spikeview.analysis.episodes import incidents
from spikeview.analysis.incident import Incident
from spikeview.analysis.observations import observe
from spikeview.run import Floats
from tests.analysis.series import healthy, run_of

ROWS = 600


def noise(seed: int, size: float = 0.05) -> Floats:
    return np.exp(size * np.random.default_rng(seed).standard_normal(ROWS))


def seen(loss: Floats, **columns: list[float]) -> tuple[Incident, ...]:
    run = run_of({**healthy(len(loss)), "loss": list(loss), **columns})
    return incidents(run, observe(run).observed)


@pytest.mark.parametrize("seed", range(3))
def test_a_slow_rise_is_one_incident_from_about_where_it_began(seed: int) -> None:
    rising = 2 * noise(seed) * 1.003 ** np.maximum(0, np.arange(ROWS) - 300)
    [found] = seen(rising)
    assert (found.first_bad.signal, found.first_bad.reason) == ("loss", "drift")
    assert abs(found.first_bad.position - 300) <= 25
    assert (found.last, found.persistence) == (ROWS - 1, "diverged")
    assert seen(2 * noise(seed)) == ()


def test_a_loss_that_grows_from_the_first_row_on() -> None:
    [found] = seen(2 * noise(0) * 1.01 ** np.arange(ROWS))
    assert (found.first_bad.reason, found.persistence) == ("drift", "diverged")
    assert found.first_bad.position <= 40


def test_a_rise_that_goes_back_ends_there() -> None:
    hill = np.interp(np.arange(ROWS), [200, 300, 400], [0.0, 0.6, 0.0])
    [found] = seen(2 * noise(0) * np.exp(hill))
    assert found.first_bad.reason == "drift"
    assert abs(found.last - 400) <= 40


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_that_falls_within_each_epoch_and_begins_anew_drifts_once(seed: int) -> None:
    epochs = np.tile(np.geomspace(2.0, 1.75, 100), ROWS // 100)
    assert [each.first_bad.reason for each in seen(epochs * noise(seed, 0.02))].count("drift") == 1


def test_a_level_begins_anew_where_the_loop_says_that_its_data_change() -> None:
    level = np.where(np.arange(ROWS) < 300, 2.0, 2.4) * noise(0)
    assert "drift" in [each.first_bad.reason for each in seen(level)]
    assert seen(level, user_stage=[0.0] * 300 + [1.0] * 300) == ()
