"""What was not recorded, or cannot be judged, makes a rule say so; it never rules anything out."""

from __future__ import annotations

from typing import Any

import pytest

from spikeview.rules import table
from spikeview.rules.diagnosis import Diagnosed, diagnose
from spikeview.rules.finding import Finding, Verdict
from tests.analysis.series import healthy, run_of, skip

AT = 200
ROWS = 300
Columns = dict[str, list[Any]]
SPIKE, UPDATE, NORM, GRADIENT = (
    "loss_spike_clean_transition",
    "ordinary_grad_abnormal_update",
    "large_norm_tiny_coef",
    "grad_nonfinite_loss_finite",
)
INF, NAN = float("inf"), float("nan")


def spiked(**values: Any) -> Columns:
    """A healthy run whose loss spikes at AT, with these values in the row before."""
    columns = healthy(ROWS)
    columns["loss"][AT] = 90.0
    for name, value in values.items():
        columns[name][AT - 1] = value
    return columns


def diagnosed(columns: Columns) -> Diagnosed:
    return diagnose(run_of(columns)).incidents[0]


def finding(columns: Columns, rule: str) -> Finding:
    return next(each for each in diagnosed(columns).findings if each.id == rule)


def told(columns: Columns, rule: str) -> tuple[Verdict, tuple[str, ...]]:
    found = finding(columns, rule)
    return found.verdict, found.missing


UNTOLD_EXECUTION = (Verdict.CANNOT_TELL, ("executed",))


def test_an_abnormal_update_of_which_nobody_knows_whether_it_executed_is_not_ruled_out() -> None:
    columns = spiked()
    columns["update_ratio"][AT - 1] *= 100
    columns["executed"] = [None] * ROWS
    for rule in (UPDATE, SPIKE, "executed_not_moved"):
        assert told(columns, rule) == UNTOLD_EXECUTION


def test_rows_that_may_have_executed_are_not_passed_over_for_an_earlier_one() -> None:
    columns = healthy(ROWS)
    columns["lr"][AT:] = [3e-2] * (ROWS - AT)
    columns["update_ratio"][AT:] = [30 * ratio for ratio in columns["update_ratio"][AT:]]
    columns["loss"][AT + 1 : AT + 60] = [12.0] * 59
    columns["executed"][AT - 5 : AT + 16] = [None] * 21
    found = diagnosed(columns)
    assert (found.incident.first_bad.position, found.transition, found.transition_unknown) == (AT + 1, None, True)
    assert told(columns, UPDATE) == told(columns, SPIKE) == UNTOLD_EXECUTION
    columns["attempted"][AT - 5 : AT + 1] = [False] * 6
    assert diagnosed(columns).transition == AT - 6, "a row without an attempt did not execute"


def test_a_row_of_which_nothing_was_recorded_is_not_the_last_healthy_one() -> None:
    columns = spiked()
    for name in columns:
        if name not in ("row", "segment", "step", "optimizer"):
            columns[name][AT - 10 : AT] = [None] * 10
    assert diagnosed(columns).incident.last_healthy == AT - 11


def test_a_norm_of_inf_without_a_count_may_be_an_overflow() -> None:
    columns = healthy(ROWS)
    columns["grad_norm"][AT] = INF
    columns["grad_nonfinite_params"] = [None] * ROWS
    for rule in (GRADIENT, NORM):
        assert told(columns, rule) == (Verdict.CANNOT_TELL, ("grad_nonfinite_params",))
    columns["grad_norm"][AT] = NAN
    assert finding(columns, GRADIENT).verdict is Verdict.MATCHED
    skip(columns, AT)
    columns["grad_nonfinite_params"][AT] = None
    assert finding(columns, GRADIENT).verdict is Verdict.MATCHED, "the scaler found one"


def test_a_norm_that_overflowed_is_the_largest_there_can_be() -> None:
    columns = healthy(ROWS)
    columns["grad_norm"][AT] = INF
    found = finding(columns, NORM)
    assert found.verdict is Verdict.MATCHED
    assert "the norm overflowed" in found.evidence


@pytest.mark.parametrize(
    ("source", "unscaled", "words"),
    [
        ("at_step", True, "was seen at the step, perhaps after clipping"),
        ("at_step", False, "may still be multiplied by the loss scale"),
        (None, False, "may still be multiplied by the loss scale"),
    ],
)
def test_a_norm_that_may_not_be_what_it_should_be_makes_nothing_ordinary(
    source: str | None, unscaled: bool, words: str
) -> None:
    columns = spiked()
    columns["grad_norm_source"], columns["grad_norm_is_unscaled"] = [source] * ROWS, [unscaled] * ROWS
    abnormal = spiked()
    abnormal.update({name: columns[name] for name in ("grad_norm_source", "grad_norm_is_unscaled")})
    abnormal["update_ratio"][AT - 1] *= 100
    for found in (*(finding(columns, rule) for rule in (SPIKE, UPDATE, NORM)), finding(abnormal, UPDATE)):
        assert found.verdict is Verdict.CANNOT_TELL
        assert words in found.evidence


def test_a_norm_that_the_recorder_divided_by_the_scale_is_judged() -> None:
    columns = spiked()
    columns["grad_norm_is_unscaled"] = [False] * ROWS
    assert finding(columns, SPIKE).verdict is Verdict.MATCHED


def test_an_update_cannot_be_held_against_a_rate_that_was_not_recorded_or_is_zero() -> None:
    for rule in (SPIKE, UPDATE):
        assert told(spiked(lr=None), rule) == (Verdict.CANNOT_TELL, ("lr",))
        zero = finding(spiked(lr=0.0, update_ratio=0.5), rule)
        assert zero.verdict is Verdict.CANNOT_TELL
        assert "update ratio 0.5000 at learning rate 0 has no place on its baseline's scale" in zero.evidence


def test_a_rate_that_rose_some_rows_before_is_dated_and_leaves_the_spike_open() -> None:
    columns = spiked()
    for row in range(AT - 14, ROWS):
        columns["lr"][row], columns["update_ratio"][row] = 3e-3, 3 * columns["update_ratio"][row]
    spike = finding(columns, SPIKE)
    assert spike.verdict is Verdict.CANNOT_TELL
    assert spike.evidence.startswith(f"after an ordinary transition at row {AT - 1}")
    for found in (spike, finding(columns, UPDATE)):
        assert f"(x3) at row {AT - 14}, 13 rows before row {AT - 1}" in found.evidence


def test_the_loss_of_an_incident_told_elsewhere_is_not_said_to_have_kept_to_its_baseline() -> None:
    one, two = spiked(), spiked()
    two["optimizer"] = ["critic"] * ROWS
    two["grad_norm"][AT] = 4000.0
    both = {name: [value for pair in zip(one[name], two[name], strict=True) for value in pair] for name in one}
    first, second = diagnose(run_of(both)).incidents
    assert (first.view.optimizer, second.view.optimizer) == ("optimizer", "critic")
    spike = next(each for each in second.findings if each.id == SPIKE)
    assert spike.verdict is Verdict.MATCHED
    assert "loss 90" in spike.evidence


def test_a_habit_of_the_norm_begins_no_incident_and_is_not_called_ordinary() -> None:
    columns = spiked(grad_norm=4000.0)
    for row in (50, 90, 130):
        columns["grad_norm"][row] = 4000.0
    found = diagnose(run_of(columns))
    assert found.habitual == {"grad_norm": 1}
    last = found.incidents[-1]
    assert last.incident.first_bad.signal == "loss"
    spike = next(each for each in last.findings if each.id == SPIKE)
    assert spike.verdict is Verdict.RULED_OUT
    assert f"row {AT - 1} was abnormal" in spike.evidence


def test_the_extent_counts_every_row_of_a_long_incident() -> None:
    columns = healthy(1000)
    columns["loss"][300:] = [90.0] * 699 + [900.0]
    columns["grad_norm"][400] = 4000.0
    incident = diagnosed(columns).incident
    assert len(incident.observations) == 256
    assert list(incident.extent) == ["loss", "grad_norm"]
    loss, norm = incident.extent["loss"], incident.extent["grad_norm"]
    assert (loss.first, loss.rows, loss.worst.position, loss.worst.value) == (300, 700, 999, 900.0)
    assert (norm.first, norm.rows) == (400, 1)
    columns["loss"][700] = NAN
    worst = diagnosed(columns).incident.extent["loss"].worst
    assert (worst.position, worst.reason) == (700, "nonfinite")


def test_the_rows_that_nothing_judges_are_counted_and_their_signals_named() -> None:
    bare = diagnose(run_of({"row": range(50), "optimizer": ["optimizer"] * 50}))
    assert (bare.judged_rows, bare.unjudged) == (0, ("loss", "grad_norm", "update_ratio", "update_cosine"))
    columns = healthy(50)
    columns["loss"][20:30] = columns["update_cosine"][:] = [None] * 10
    columns["update_cosine"] = [None] * 50
    for name in ("grad_norm", "update_ratio"):
        columns[name][20:30] = [None] * 10
    found = diagnose(run_of(columns))
    assert (found.judged_rows, found.unjudged) == (36, ("update_cosine",))


def test_tens_of_thousands_of_incidents_are_found_before_any_table_is_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = healthy(4000)
    columns["loss"][20::20] = [NAN] * 199
    worked: list[str] = []
    judge = table._finding
    monkeypatch.setattr(table, "_finding", lambda rule, context: worked.append(rule.id) or judge(rule, context))
    found = diagnose(run_of(columns))
    assert (len(found.incidents), worked) == (199, [])
    assert found.incidents[7].findings[0].id == "loss_nonfinite"
    assert len(worked) == len(table.RULES)
