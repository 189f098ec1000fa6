"""Each check on a run that fails it, on the nearest that passes, and where it does not apply or cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from spikeview.rules.checks import CHECKS
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.finding import CheckResult, Outcome
from tests.analysis.series import SCHEDULED, healthy, run_of, skip

Columns = dict[str, list[Any]]
FAILED, PASSED, NOT_APPLICABLE, CANNOT_TELL = (
    Outcome.FAILED,
    Outcome.PASSED,
    Outcome.NOT_APPLICABLE,
    Outcome.CANNOT_TELL,
)


def check(columns: Columns, name: str, manifest: Any = SCHEDULED) -> CheckResult:
    return next(each for each in diagnose(run_of(columns, manifest)).checks if each.id == name)


def without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


def scaled(rows: int, scale: float = 1024.0) -> Columns:
    columns = healthy(rows)
    columns["loss_scale"] = [scale] * rows
    return columns


def test_a_healthy_run_fails_nothing() -> None:
    outcomes = {each.id: each.outcome for each in diagnose(run_of(healthy(200), SCHEDULED)).checks}
    assert FAILED not in outcomes.values()
    assert list(outcomes.values()).count(PASSED) > 10


@pytest.mark.parametrize("name", [each.id for each in CHECKS])
def test_what_was_not_recorded_is_never_passed(name: str) -> None:
    assert check({"user_tokens": [1.0, 2.0, 3.0]}, name, {}).outcome is CANNOT_TELL


def test_schedule_drift() -> None:
    columns = healthy(60)
    skip(columns, 20)
    skip(columns, 21)
    failed = check(columns, "schedule_drift")
    assert (failed.outcome, failed.rows) == (FAILED, (20, 21))
    assert failed.evidence.startswith("drift 2 (scheduled 60, executed 58)")
    columns["scheduled"][20] = columns["scheduled"][21] = 0
    assert check(columns, "schedule_drift").outcome is PASSED


def test_schedules_on_other_clocks_do_not_drift() -> None:
    columns = healthy(60)
    skip(columns, 29)
    columns["scheduled"] = [int(row % 30 == 29) for row in range(60)]
    assert check(columns, "schedule_drift").outcome is NOT_APPLICABLE
    columns["scheduled"] = [1] * 60
    plateau = {"optimizers": {"optimizer": {"scheduler": {"class": "ReduceLROnPlateau"}}}}
    assert check(columns, "schedule_drift", plateau).outcome is NOT_APPLICABLE
    columns["scheduled"] = [None] * 60
    assert check(columns, "schedule_drift").outcome is NOT_APPLICABLE


def test_skip_rate() -> None:
    columns = healthy(1500)
    for row in range(400, 400 + 51 * 19, 19):
        skip(columns, row)
    failed = check(columns, "skip_rate")
    assert (failed.outcome, failed.rows[0]) == (FAILED, 400)
    columns = healthy(1500)
    for row in range(400, 400 + 50 * 19, 19):
        skip(columns, row)
    assert check(columns, "skip_rate").outcome is PASSED


def test_the_skip_rate_counts_rows_that_the_loop_declined() -> None:
    columns = healthy(1100)
    for row in range(100, 1090, 10):
        skip(columns, row, "nonfinite_grad")
        columns["attempted"][row] = False
    assert check(columns, "skip_rate").outcome is FAILED


def test_the_skip_rate_of_few_attempts_is_judged_only_where_it_is_far_over() -> None:
    columns = healthy(30)
    for row in range(30):
        skip(columns, row)
    assert check(columns, "skip_rate").outcome is FAILED
    columns = healthy(30)
    assert check(columns, "skip_rate").outcome is PASSED
    skip(columns, 10)
    skip(columns, 12)
    assert check(columns, "skip_rate").outcome is CANNOT_TELL
    columns = healthy(16)
    for row in range(10):
        skip(columns, row)
    assert check(columns, "skip_rate").outcome is CANNOT_TELL, "a scaler that finds its level"


def test_scale_never_updates() -> None:
    columns = scaled(100)
    skip(columns, 40)
    failed = check(columns, "scale_never_updates")
    assert (failed.outcome, failed.rows) == (FAILED, (40,))
    columns["loss_scale"][41:] = [512.0] * 59
    assert check(columns, "scale_never_updates").outcome is PASSED
    assert check(scaled(100), "scale_never_updates").outcome is PASSED
    grown = scaled(100)
    grown["loss_scale"][20:] = [2048.0] * 80
    for row in range(60, 70):
        skip(grown, row)
    assert check(grown, "scale_never_updates").rows == tuple(range(60, 70)), "a scale that grew answered nothing"
    assert check(healthy(100), "scale_never_updates").outcome is NOT_APPLICABLE


def test_clip_before_unscale() -> None:
    columns = scaled(100)
    assert check(columns, "clip_before_unscale").outcome is PASSED
    columns["grad_norm_is_unscaled"][7] = False
    failed = check(columns, "clip_before_unscale")
    assert (failed.outcome, failed.rows) == (FAILED, (7,))
    assert check(healthy(100), "clip_before_unscale").outcome is NOT_APPLICABLE
    assert check(without(columns, "grad_norm_is_unscaled"), "clip_before_unscale").outcome is CANNOT_TELL


def test_in_a_foreign_log_a_norm_that_follows_the_scale_was_not_unscaled() -> None:
    columns = without(scaled(400), "grad_norm_is_unscaled", "grad_norm_source")
    columns["loss_scale"] = [2.0 ** (10 + row // 50 % 3) for row in range(400)]
    assert check(columns, "clip_before_unscale").outcome is PASSED
    for row, scale in enumerate(columns["loss_scale"]):
        columns["grad_norm"][row] *= scale
    failed = check(columns, "clip_before_unscale")
    assert failed.outcome is FAILED
    assert "octaves for each of the scale, over 7 changes" in failed.evidence
    columns["loss_scale"] = [1024.0] * 400
    assert check(columns, "clip_before_unscale").missing == ("grad_norm_is_unscaled",)


def test_norm_logged_after_clip() -> None:
    columns = healthy(200)
    columns["grad_norm"] = [min(norm, 1.0) for norm in columns["grad_norm"]]
    assert check(columns, "norm_logged_after_clip").outcome is FAILED
    assert check(healthy(200), "norm_logged_after_clip").outcome is PASSED
    columns["max_norm"] = [None] * 200
    assert check(columns, "norm_logged_after_clip").outcome is FAILED, "a limit that nobody recorded"
    columns["grad_norm"] = healthy(200)["grad_norm"]
    assert check(columns, "norm_logged_after_clip").outcome is NOT_APPLICABLE
    columns["grad_norm"] = [round(min(norm, 1.5), 1) for norm in columns["grad_norm"]]
    assert check(columns, "norm_logged_after_clip").outcome is NOT_APPLICABLE, "rounded norms share every value"


def test_masked_nan_loss() -> None:
    columns = healthy(100)
    columns["grad_norm"][50], columns["loss"][50] = float("nan"), 0.0
    failed = check(columns, "masked_nan_loss")
    assert (failed.outcome, failed.rows) == (FAILED, (50,))
    columns["grad_norm"][50] = 1.0
    assert check(columns, "masked_nan_loss").outcome is PASSED


def test_duplicate_steps() -> None:
    columns = healthy(100)
    columns["step"][60] = 59
    failed = check(columns, "duplicate_steps")
    assert (failed.outcome, failed.rows) == (FAILED, (60,))
    columns["micro_step"][60] = 1
    assert check(columns, "duplicate_steps").outcome is PASSED
    columns["micro_step"][60], columns["segment"][60:] = 0, [1] * 40
    assert check(columns, "duplicate_steps").outcome is PASSED, "a resume may go back"


def test_gap_in_log() -> None:
    columns = healthy(100)
    columns["row"][60:] = list(range(65, 105))
    failed = check(columns, "gap_in_log")
    assert (failed.outcome, failed.rows) == (FAILED, (65,))
    columns = healthy(100)
    columns["step"] = [10 * row for row in range(100)]
    assert check(columns, "gap_in_log").outcome is PASSED, "every tenth step is a stride, not a gap"
    columns["step"][60:] = [10 * row + 30 for row in range(60, 100)]
    assert check(columns, "gap_in_log").rows == (60,)


def test_with_several_optimizers_the_worst_answer_counts_and_is_named() -> None:
    one, two = healthy(60), healthy(60)
    two["optimizer"] = ["critic"] * 60
    skip(two, 20)
    both = {name: [value for pair in zip(one[name], two[name], strict=True) for value in pair] for name in one}
    failed = check(both, "schedule_drift")
    assert (failed.outcome, failed.rows) == (FAILED, (20,))
    assert failed.evidence.startswith("critic: ")


def test_several_optimizers_that_take_turns_lose_no_row() -> None:
    columns = healthy(100)
    columns["optimizer"] = ["optimizer", "critic"] * 50
    assert check(columns, "gap_in_log").outcome is PASSED


SOME = slice(40, 60)


@pytest.mark.parametrize(
    ("name", "unrecorded"),
    [
        ("schedule_drift", ("executed",)),
        ("skip_rate", ("executed",)),
        ("skip_rate", ("attempted",)),
        ("scale_never_updates", ("grad_norm", "grad_nonfinite_params")),
        ("clip_before_unscale", ("grad_norm_is_unscaled",)),
        ("duplicate_steps", ("step",)),
        ("gap_in_log", ("row", "step")),
    ],
)
def test_a_check_does_not_pass_over_rows_that_were_not_recorded(name: str, unrecorded: tuple[str, ...]) -> None:
    columns = scaled(100)
    assert check(columns, name).outcome is PASSED
    for column in unrecorded:
        columns[column][SOME] = [None] * 20
    answer = check(columns, name)
    assert (answer.outcome, answer.rows[0]) == (CANNOT_TELL, 40)
    assert answer.evidence.endswith("not recorded at rows 40 to 59")


def test_a_null_is_no_zero_to_a_check() -> None:
    columns = healthy(100)
    columns["step"] = [row // 4 for row in range(100)]
    columns["micro_step"] = [None] * 100
    assert check(columns, "duplicate_steps").outcome is CANNOT_TELL, "four rows of a step may be micro-steps"
    assert check(without(columns, "micro_step"), "duplicate_steps").outcome is CANNOT_TELL
    columns = healthy(100)
    columns["micro_step"] = [None] * 100
    assert check(columns, "duplicate_steps").outcome is PASSED, "each step came once"
    columns = healthy(100)
    columns["step"] = [row if row % 2 else None for row in range(100)]
    assert check(columns, "duplicate_steps").outcome is CANNOT_TELL
    columns = scaled(100)
    columns["loss_scale"][7], columns["grad_norm_is_unscaled"][7] = None, False
    assert check(columns, "clip_before_unscale").outcome is PASSED, "no scale, nothing to multiply by"
    columns = healthy(100)
    skip(columns, 50)
    assert check(columns, "scale_never_updates").outcome is CANNOT_TELL, "an AMP overflow had a scale"
    columns = healthy(100)
    columns["clip_coef"] = [0.5] * 100
    columns["grad_norm"] = [None] * 100
    assert check(columns, "norm_logged_after_clip").outcome is CANNOT_TELL
    columns["max_norm"] = [None] * 100
    assert check(columns, "norm_logged_after_clip").outcome is CANNOT_TELL
    columns = healthy(100)
    columns["loss"][50] = 0.0
    columns["grad_norm"][50] = columns["grad_nonfinite_params"][50] = None
    assert check(columns, "masked_nan_loss").outcome is CANNOT_TELL


def test_buffers_that_stay_poisoned() -> None:
    columns = healthy(60)
    columns["nonfinite_buffers"] = [None if row % 10 else 4 * (row >= 20) for row in range(60)]
    failed = check(columns, "nonfinite_buffers")
    assert failed.outcome is FAILED
    assert failed.rows == (20, 30, 40, 50)
    assert "4 buffers not finite from row 20 on and to the end" in failed.evidence
    columns["nonfinite_buffers"] = [None if row % 10 else 0 for row in range(60)]
    assert check(columns, "nonfinite_buffers").outcome is PASSED
