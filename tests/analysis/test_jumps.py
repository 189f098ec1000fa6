"""A learning rate far over any before, and parameters that lose their gradient, are seen by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from spikeview.analysis.episodes import incidents
from spikeview.analysis.observations import observe
from tests.analysis.series import healthy, run_of


def persistences(**columns: list[Any]) -> list[tuple[str, str]]:
    run = run_of({**healthy(200), **columns})
    return [(each.persistence, each.severity) for each in incidents(run, observe(run).observed)]


def seen(**columns: list[Any]) -> list[tuple[int, str, str]]:
    run = run_of({**healthy(200), **columns})
    found = incidents(run, observe(run).observed)
    return [(each.first_bad.position, each.first_bad.signal, each.first_bad.reason) for each in found]


def schedule(name: str) -> list[float]:
    rows = range(200)
    rates = {
        "thirty times": [3e-2 if row >= 100 else 1e-3 for row in rows],
        "for one step": [3e-2 if row == 100 else 1e-3 for row in rows],
        "tenfold, by hand": [1e-2 if row >= 100 else 1e-3 for row in rows],
        "warm-up from nothing": [1e-3 * min(1.0, row / 50) for row in rows],
        "restarts": [1e-3 * 0.9 ** (row % 50) for row in rows],
        "farther than it began": [1e-3 * 0.9 ** (row % 50) * (1 + (row >= 100)) for row in rows],
    }
    return rates[name]


@pytest.mark.parametrize("name", ["thirty times", "for one step", "farther than it began"])
def test_a_rate_over_all_that_the_run_had_is_news(name: str) -> None:
    assert seen(lr=schedule(name)) == [(100, "lr", "jump")]


def test_a_jump_for_good_weighs_more_than_one_that_is_taken_back() -> None:
    assert persistences(lr=schedule("thirty times")) == [("persistent", "critical")]
    assert persistences(lr=schedule("for one step")) == [("transient", "warning")]
    meant = persistences(grad_none_params=[2] * 120 + [6] * 80)
    assert meant == [("persistent", "warning")], "layers that are frozen on purpose look the same"


@pytest.mark.parametrize("name", ["tenfold, by hand", "warm-up from nothing", "restarts"])
def test_a_rate_of_an_ordinary_schedule_is_not(name: str) -> None:
    assert seen(lr=schedule(name)) == []


def test_parameters_that_have_no_gradient_any_more_are_news_and_a_branch_that_is_used_now_and_then_is_not() -> None:
    assert seen(grad_none_params=[2] * 120 + [6] * 80) == [(120, "grad_none_params", "jump")]
    assert seen(grad_none_params=[6] * 120 + [2] * 80) == []
    assert seen(grad_none_params=[2 + (row % 7 == 0) for row in range(200)]) == []
    assert seen(grad_none_params=[2] * 120 + [6] * 3 + [2] * 77) == []
