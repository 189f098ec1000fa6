"""Skips by which a scaler finds its level are no incident; others are."""

from __future__ import annotations

from spikeview.analysis.episodes import incidents
from spikeview.analysis.observations import observe
from tests.analysis.series import healthy, run_of, skip


def onsets(columns: dict[str, list[object]]) -> list[int]:
    run = run_of(columns)
    return [incident.first_bad.position for incident in incidents(run, observe(run)[1])]


def test_skips_before_the_first_executed_step_of_a_segment_are_calibration() -> None:
    columns = healthy(100)
    columns["segment"] = [0] * 50 + [1] * 50
    for row in (0, 1, 2, 50, 51):
        skip(columns, row)
    assert onsets(columns) == []
    skip(columns, 60)
    assert onsets(columns) == [60]


def test_a_run_that_never_executes_is_not_calibrating() -> None:
    columns = healthy(100)
    for row in range(100):
        skip(columns, row)
    assert onsets(columns) == [0]


def test_no_scale_needs_more_halvings_than_there_are_from_the_largest_in_use_to_one() -> None:
    columns = healthy(100)
    for row in range(24):
        skip(columns, row)
    assert onsets(columns) == []
    for row in range(24, 40):
        skip(columns, row)
    assert onsets(columns) == [24]


def test_a_non_finite_loss_is_never_calibration() -> None:
    columns = healthy(50)
    skip(columns, 0)
    columns["loss"][0] = float("inf")
    assert onsets(columns) == [0]


def test_one_skip_right_after_the_scale_grew_is_calibration_and_a_second_is_not() -> None:
    columns = healthy(100)
    columns["loss_scale"] = [1024.0] * 60 + [2048.0] + [1024.0] * 39
    skip(columns, 60)
    assert onsets(columns) == []
    skip(columns, 61)
    assert onsets(columns) == [61]


def test_a_warm_up_from_a_learning_rate_of_zero_is_no_incident_and_a_rate_of_zero_later_is() -> None:
    columns = healthy(100)
    columns["lr"][0], columns["moved"][0] = 0.0, False
    columns["update_ratio"][0] = columns["update_norm"][0] = 0.0
    columns["update_cosine"][0] = None
    assert onsets(columns) == []
    columns["lr"][70], columns["moved"][70], columns["update_cosine"][70] = 0.0, False, None
    assert onsets(columns) == [70]
