"""Skips by which a scaler finds its level are no incident; others are."""

from __future__ import annotations

from spikeview.analysis.episodes import incidents
from spikeview.analysis.observations import observe
from tests.analysis.series import healthy, run_of, skip


def onsets(columns: dict[str, list[object]], parameters: int = 20) -> list[int]:
    run = run_of(columns, {"gradient_dtypes": {"optimizer": {"float32": parameters}}})
    return [incident.first_bad.position for incident in incidents(run, observe(run).observed)]


def test_skips_before_the_first_executed_step_of_a_segment_are_calibration() -> None:
    columns = healthy(100)
    columns["segment"] = [0] * 50 + [1] * 50
    for row in (0, 1, 2, 50, 51):
        skip(columns, row)
    assert onsets(columns) == []
    skip(columns, 90)
    assert onsets(columns) == [90]


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


def overflow(columns: dict[str, list[object]], row: int, parameters: int) -> None:
    skip(columns, row)
    columns["grad_nonfinite_params"][row] = parameters


def test_right_after_the_scale_grew_one_skip_is_calibration_and_a_second_of_few_parameters() -> None:
    columns = healthy(100)
    columns["loss_scale"] = [1024.0] * 60 + [2048.0] + [1024.0] * 39
    overflow(columns, 60, 20)
    assert onsets(columns) == []
    overflow(columns, 60, 2)
    overflow(columns, 61, 1)
    assert onsets(columns) == []
    overflow(columns, 61, 7)
    assert onsets(columns) == [61]
    overflow(columns, 61, 1)
    overflow(columns, 62, 1)
    assert onsets(columns) == [61], "no growth costs three"


def test_before_the_first_scale_has_settled_so_many_of_few_parameters_are_calibration() -> None:
    columns = healthy(100)
    for row in (0, 9, 22, 23):
        overflow(columns, row, 2)
    assert onsets(columns) == []
    columns["grad_norm"][23] = float("nan")
    assert onsets(columns) == [22], "an overflow leaves infinities; a NaN may be anything"
    overflow(columns, 23, 7)
    assert onsets(columns) == [22]


def test_many_parameters_overflow_in_the_search_of_the_scale_only_at_its_beginning() -> None:
    columns = healthy(100)
    for row in (0, 9):
        overflow(columns, row, 20)
    overflow(columns, 10, 2)
    assert onsets(columns) == []
    overflow(columns, 22, 6)
    assert onsets(columns) == []
    overflow(columns, 22, 7)
    assert onsets(columns) == [22]


def test_a_search_from_far_above_ends_at_an_overflow_of_few_parameters() -> None:
    columns = healthy(100)
    overflow(columns, 5, 2)
    overflow(columns, 6, 20)
    assert onsets(columns) == [5]


def test_of_two_parameters_both_are_many() -> None:
    columns = healthy(100)
    overflow(columns, 20, 1)
    assert onsets(columns, parameters=2) == []
    overflow(columns, 20, 2)
    assert onsets(columns, parameters=2) == [20]


def at_the_edge(row: int, scale: float, norm: float = float("inf")) -> list[int]:
    """Onsets where one row is skipped at a scale, after a first one at 65536."""
    columns = healthy(200)
    columns["loss_scale"] = [65536.0] + [scale] * 199
    for each in (0, row):
        skip(columns, each)
    columns["grad_norm"][row] = norm
    return onsets(columns)


def test_a_single_overflow_at_a_scale_known_to_be_near_its_limit_is_calibration() -> None:
    assert at_the_edge(120, 32768.0) == []
    assert at_the_edge(120, 256.0) == [120]
    assert at_the_edge(120, 32768.0, float("nan")) == [120], "an overflow leaves infinities; a NaN may be anything"


def test_the_first_overflow_of_a_run_is_calibration_however_late() -> None:
    columns = healthy(200)
    columns["loss_scale"] = [65536.0] * 121 + [32768.0] * 79
    skip(columns, 120)
    assert onsets(columns) == []
    columns["loss_scale"] = [1024.0] * 60 + [2048.0] * 60 + [2048.0] + [1024.0] * 79
    assert onsets(columns) == [], "the scale had grown, and settled"
    columns["grad_nonfinite_params"][120] = 7
    assert onsets(columns) == [120], "more than the largest gradient"
    columns["grad_nonfinite_params"][120] = None
    assert onsets(columns) == [120], "perhaps more"
    columns["grad_nonfinite_params"][120] = 2
    columns["loss_scale"] = [1024.0] * 100 + [2048.0] * 21 + [1024.0] * 79
    assert onsets(columns) == [], "the scale had grown, and not settled"


def test_a_warm_up_from_a_learning_rate_of_zero_is_no_incident_and_a_rate_of_zero_later_is() -> None:
    columns = healthy(100)
    columns["lr"][0], columns["moved"][0] = 0.0, False
    columns["update_ratio"][0] = columns["update_norm"][0] = 0.0
    columns["update_cosine"][0] = None
    assert onsets(columns) == []
    columns["lr"][70], columns["moved"][70], columns["update_cosine"][70] = 0.0, False, None
    assert onsets(columns) == [70]
