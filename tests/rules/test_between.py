"""Several runs side by side: what they share points at the data, what stands alone at one run's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spikeview.rules.between import Between, between, spikes
from spikeview.rules.diagnosis import diagnose
from tests.analysis.series import healthy, run_of

NAMES = ("a", "b", "c")


def found(rows: Sequence[Sequence[int]], lengths: Sequence[int] = (200, 200, 200), **columns: Any) -> Between:
    """Runs whose losses spike at these rows each."""
    runs = []
    for name, places, length in zip(NAMES, rows, lengths, strict=False):
        own = healthy(length)
        for row in places:
            own["loss"][row] = 90.0
        own.update({column: make(name, length) for column, make in columns.items()})
        runs.append(spikes(diagnose(run_of(own)), name))
    return between(runs)


def test_the_same_batch_in_two_runs_is_the_data_wherever_it_came() -> None:
    shifted = found([[100], [120]], batch_id=lambda name, rows: [str(row - 20 * (name == "b")) for row in range(rows)])
    [shared] = shifted.shared
    assert (shared.by, [(each.run, each.step) for each in shared.onsets]) == ("batch", [("a", 100), ("b", 120)])
    assert shared.look == "the same batch in each: suspect the data"
    assert shifted.alone == ()


def test_the_same_step_with_other_batches_is_the_schedule() -> None:
    [shared] = found([[100], [100]], batch_id=lambda name, rows: [f"{name}-{row}" for row in range(rows)]).shared
    assert shared.by == "step_only"
    assert "not the data" in shared.look


def test_the_same_step_without_batches_is_the_data_if_the_order_was_the_same() -> None:
    [shared] = found([[100], [100]], batch_id=lambda name, rows: [None] * rows).shared
    assert shared.by == "step"


def test_a_spike_in_one_run_names_those_that_passed_the_step_and_not_those_that_never_reached_it() -> None:
    seen = found([[150], [], []], lengths=(200, 200, 100))
    [alone] = seen.alone
    assert (alone.onset.run, alone.onset.row, alone.ordinary) == ("a", 150, ("b",))
    assert found([[], []]) == Between((), ())


def strays(far: Sequence[int], name: str) -> Any:
    """A run that goes out four times, the last at row 150: then that is its habit, and no incident."""
    own = healthy(200)
    own["loss"] = [2.0 * (1.5 if row in far else 1.0) * (1 + 0.01 * (row % 7)) for row in range(200)]
    own["batch_id"] = [None] * 200
    return spikes(diagnose(run_of(own)), name)


def test_what_two_runs_do_by_habit_on_the_same_step_is_shared_and_on_different_ones_is_not() -> None:
    one, other = strays((60, 80, 100, 150), "a"), strays((62, 82, 102, 150), "b")
    assert [[each.step for each in run.habits] for run in (one, other)] == [[150], [150]]
    [shared] = between([one, other]).shared
    assert [(each.run, each.step) for each in shared.onsets] == [("a", 150), ("b", 150)]
    assert between([one, strays((62, 82, 102, 152), "b")]).shared == ()


def test_habits_that_are_so_many_that_chance_puts_some_on_one_step_are_not_shared() -> None:
    often, other = strays(range(60, 200, 10), "a"), strays((65, 85, 105, 150), "b")
    assert 150 in [each.step for each in often.habits]
    assert between([often, other]).shared == ()
