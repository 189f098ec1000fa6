"""Each rule on a run that has the fault, on the nearest that has not, and where the columns cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from spikeview.rules.diagnosis import Diagnosed, diagnose
from spikeview.rules.finding import Finding, Verdict
from tests.analysis.series import healthy, run_of, skip

AT = 150
Columns = dict[str, list[Any]]


def only(columns: Columns, **more: Any) -> Diagnosed:
    [diagnosed] = diagnose(run_of(columns, **more)).incidents
    return diagnosed


def finding(columns: Columns, rule: str, **more: Any) -> Finding:
    return next(each for each in only(columns, **more).findings if each.id == rule)


def without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


def spiked(**values: Any) -> Columns:
    """A healthy run with these values at one row."""
    columns = healthy(200)
    for name, value in values.items():
        columns[name][AT] = value
    return columns


def test_every_rule_answers_and_what_matched_is_told_first() -> None:
    ids = [each.id for each in only(spiked(loss=90.0)).findings]
    assert ids == [
        "loss_spike_clean_transition",
        "loss_nonfinite",
        "grad_nonfinite_loss_finite",
        "large_norm_tiny_coef",
        "ordinary_grad_abnormal_update",
        "no_attempt",
        "attempted_not_executed",
        "executed_not_moved",
    ]


def matched(diagnosed: Diagnosed) -> list[str]:
    return [each.id for each in diagnosed.findings if each.verdict is Verdict.MATCHED]


def test_the_order_is_matched_cannot_tell_ruled_out() -> None:
    verdicts = [each.verdict for each in only(without(spiked(loss=90.0, grad_norm=4000.0), "update_cosine")).findings]
    assert verdicts == sorted(verdicts, key=["matched", "cannot_tell", "ruled_out"].index)
    assert len(set(verdicts)) == 3


def test_of_the_matched_the_one_that_speaks_of_the_first_bad_observation_leads() -> None:
    columns = spiked(loss=90.0, grad_norm=4000.0)
    assert matched(only(columns)) == ["loss_spike_clean_transition", "large_norm_tiny_coef"]
    columns["loss"][AT + 1] = float("inf")
    assert matched(only(columns)) == ["loss_spike_clean_transition", "large_norm_tiny_coef", "loss_nonfinite"]
    columns["loss"][AT] = float("nan")
    assert matched(only(columns)) == ["loss_nonfinite", "large_norm_tiny_coef"]


def test_of_the_matched_the_earlier_explains_the_later() -> None:
    columns = spiked(lr=3e-2)
    columns["update_ratio"][AT] *= 30
    columns["loss"][AT + 1], columns["grad_norm"][AT + 1] = 90.0, 4000.0
    assert matched(only(columns)) == ["ordinary_grad_abnormal_update", "large_norm_tiny_coef"]


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "NaN"), (float("inf"), "Inf"), (float("-inf"), "-Inf")])
def test_loss_nonfinite(value: float, text: str) -> None:
    matched = finding(spiked(loss=value), "loss_nonfinite")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT,))
    assert matched.evidence.startswith(f"loss {text} at row {AT}; after an ordinary transition at row {AT - 1}: ")
    spike = finding(spiked(loss=value), "loss_spike_clean_transition")
    assert spike.verdict is Verdict.RULED_OUT, "a loss that is not finite is told once"
    assert "Loss non-finite" in spike.evidence
    caused = spiked(loss=value)
    caused["update_ratio"][AT - 1] = 0.5
    assert f"the transition of row {AT - 1} was abnormal" in finding(caused, "loss_nonfinite").evidence
    assert finding(spiked(loss=90.0), "loss_nonfinite").verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(grad_norm=1e5), "loss"), "loss_nonfinite")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("loss",))


def test_grad_nonfinite_loss_finite() -> None:
    columns = healthy(200)
    skip(columns, AT)
    matched = finding(columns, "grad_nonfinite_loss_finite")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT,))
    columns["loss"][AT] = float("inf")
    assert finding(columns, "grad_nonfinite_loss_finite").verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(loss=90.0), "grad_norm", "grad_nonfinite_params"), "grad_nonfinite_loss_finite")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("grad_norm",))


def test_a_norm_that_overflowed_over_finite_gradients_is_no_non_finite_gradient() -> None:
    ruled_out = finding(spiked(grad_norm=float("inf")), "grad_nonfinite_loss_finite")
    assert ruled_out.verdict is Verdict.RULED_OUT
    assert "only their norm overflowed" in ruled_out.evidence


def test_large_norm_tiny_coef() -> None:
    clipped = finding(spiked(grad_norm=4000.0, clip_coef=0.00025), "large_norm_tiny_coef")
    assert (clipped.verdict, clipped.rows) == (Verdict.MATCHED, (AT,))
    assert "clip coefficient 0.0002500" in clipped.evidence
    free = finding(spiked(grad_norm=4000.0, clip_coef=None), "large_norm_tiny_coef")
    assert free.verdict is Verdict.MATCHED
    assert "not clipped" in free.evidence
    assert finding(spiked(loss=90.0), "large_norm_tiny_coef").verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(loss=90.0), "grad_norm"), "large_norm_tiny_coef")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("grad_norm",))


def test_an_ordinary_norm_seen_only_at_the_step_rules_nothing_out() -> None:
    columns = spiked(loss=90.0)
    columns["grad_norm_source"] = ["at_step"] * 200
    assert finding(columns, "large_norm_tiny_coef").verdict is Verdict.CANNOT_TELL


def test_an_update_that_explains_the_next_loss_is_named_with_the_norm_that_made_it() -> None:
    columns = spiked(loss=90.0, grad_norm=4000.0, clip_coef=None, update_ratio=50.0)
    columns["loss"][AT + 1] = 1e5
    evidence = finding(columns, "large_norm_tiny_coef").evidence
    assert "update ratio 50" in evidence
    assert f"explains the loss of row {AT + 1}" in evidence
    columns["update_ratio"][AT] = 1e-3
    assert "explains" not in finding(columns, "large_norm_tiny_coef").evidence


def test_ordinary_grad_abnormal_update() -> None:
    matched = finding(spiked(update_ratio=0.5), "ordinary_grad_abnormal_update")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT,))
    assert "pre-clip norm" in matched.evidence
    both = finding(spiked(update_ratio=0.5, grad_norm=4000.0), "ordinary_grad_abnormal_update")
    assert both.verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(loss=90.0), "update_cosine"), "ordinary_grad_abnormal_update")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("update_cosine",))
    unsure = finding(without(spiked(update_ratio=0.5), "grad_norm"), "ordinary_grad_abnormal_update")
    assert (unsure.verdict, unsure.missing) == (Verdict.CANNOT_TELL, ("grad_norm",))


def test_a_learning_rate_thirty_times_as_large_at_the_accused_transition_is_named() -> None:
    columns = spiked(lr=3e-2)
    columns["update_ratio"][AT] *= 30
    columns["loss"][AT + 1] = 90.0
    diagnosed = only(columns)
    first = diagnosed.incident.first_bad
    assert (first.position, first.signal, first.reason, diagnosed.transition) == (AT, "lr", "jump", AT)
    assert [(lead.signal, lead.rows_ahead) for lead in diagnosed.incident.lead] == [("lr", 1)]
    verdicts = {each.id: each for each in diagnosed.findings}
    assert verdicts["ordinary_grad_abnormal_update"].verdict is Verdict.MATCHED
    assert f"learning rate 0.001000 to 0.03000 (x30) at row {AT}" in verdicts["ordinary_grad_abnormal_update"].evidence
    assert verdicts["loss_spike_clean_transition"].verdict is Verdict.RULED_OUT


def test_a_learning_rate_that_rises_and_rises_is_not_called_an_ordinary_transition() -> None:
    columns = spiked(loss=90.0)
    columns["lr"] = [1e-3 * 1.03 ** max(0, row - 50) for row in range(200)]
    found = finding(columns, "loss_spike_clean_transition")
    assert found.verdict is Verdict.CANNOT_TELL
    assert (
        f"learning rate 0.004256 to 0.01866 (x4.384) from row {AT - 51} to row {AT - 1}, and rising" in found.evidence
    )
    columns["lr"] = [1e-3 * min(1.0, (row + 1) / 100) for row in range(200)]
    assert finding(columns, "loss_spike_clean_transition").verdict is Verdict.MATCHED, "the warm-up was over"


def test_an_update_made_of_an_earlier_large_gradient_is_not_called_abnormal_by_itself() -> None:
    columns = spiked(loss=90.0, grad_norm=4000.0)
    columns["update_ratio"][AT + 1 : AT + 4] = [0.1] * 3
    found = finding(columns, "ordinary_grad_abnormal_update")
    assert found.verdict is Verdict.RULED_OUT
    assert f"at row {AT + 1} comes after a gradient that was not ordinary: pre-clip norm 4000" in found.evidence
    columns["update_ratio"][AT - 1] = 0.1
    own = finding(columns, "ordinary_grad_abnormal_update")
    assert (own.verdict, own.rows) == (Verdict.MATCHED, (AT - 1,))


def test_one_update_against_its_gradient_is_neither_abnormal_nor_ordinary() -> None:
    columns = spiked(loss=90.0)
    columns["update_cosine"][AT - 1] = -0.4
    found = finding(columns, "loss_spike_clean_transition")
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.evidence.startswith("cosine -0.4000 (")
    assert f"MADs) at row {AT - 1}: too far out to be ordinary, too little to be sure" in found.evidence


def test_parameters_that_lose_their_gradient_are_named_though_the_others_move() -> None:
    columns = {**healthy(200), "grad_none_params": [1] * AT + [5] * (200 - AT)}
    diagnosed = only(columns)
    assert matched(diagnosed) == ["executed_not_moved"]
    assert diagnosed.findings[0].evidence.startswith(f"parameters without a gradient 1 to 5 at row {AT}: ")
    assert diagnose(run_of({**healthy(200), "grad_none_params": [5] * 200})).incidents == ()


def test_a_loss_that_rises_slowly_is_no_spike() -> None:
    columns = healthy(400)
    columns["loss"][200:] = [value * 1.02**row for row, value in enumerate(columns["loss"][200:])]
    diagnosed = only(columns)
    assert (diagnosed.incident.first_bad.reason, diagnosed.incident.persistence) == ("drift", "diverged")
    found = next(each for each in diagnosed.findings if each.id == "loss_spike_clean_transition")
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.evidence.startswith("the loss rose slowly, from ")
    assert found.evidence.endswith(": no single batch or transition shows why")


def test_a_resume_just_before_is_named_with_what_came_back() -> None:
    columns = spiked(update_ratio=0.5)
    columns["segment"] = [0] * (AT - 2) + [1] * (202 - AT)
    events = [{"kind": "resume", "row": AT - 3, "from_checkpoint": "last", "restored": ["model"]}]
    evidence = finding(columns, "ordinary_grad_abnormal_update", events=events).evidence
    assert f"resumed 2 rows before (row {AT - 2}; restored: model)" in evidence
    events[0] |= {"came_back": ["model"], "lost": {"optimizer": "no exp_avg"}}
    evidence = finding(columns, "ordinary_grad_abnormal_update", events=events).evidence
    assert f"(row {AT - 2}; not as it was at the checkpoint: optimizer)" in evidence


def test_the_next_step_names_the_batch_the_row_and_the_checkpoint_before_it() -> None:
    events = [{"kind": "checkpoint", "row": row, "name": f"step-{row}.pt"} for row in (AT - 60, AT - 10, AT + 10)]
    spike = finding(spiked(loss=90.0), "loss_spike_clean_transition", events=events)
    assert spike.next.startswith(f"evaluate batch b-{AT} and two ordinary batches with the parameters of ")
    assert f"checkpoint step-{AT - 10}.pt: if the losses are alike" in spike.next
    update = finding(spiked(update_ratio=0.5), "ordinary_grad_abnormal_update")
    assert update.next.startswith(f"repeat the step of row {AT} with an optimizer without history")
    assert finding(spiked(loss=90.0), "loss_nonfinite").next == "", "nothing is left to prove wrong"


def test_no_attempt() -> None:
    columns = spiked(loss=90.0, attempted=False, executed=False, skip_reason="gated")
    for name in ("moved", "update_norm", "update_ratio", "update_cosine"):
        columns[name][AT] = None
    matched = finding(columns, "no_attempt")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT,))
    assert "gated" in matched.evidence
    assert finding(spiked(loss=90.0), "no_attempt").verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(loss=90.0), "attempted"), "no_attempt")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("attempted",))


def test_attempted_not_executed() -> None:
    columns = healthy(200)
    skip(columns, AT)
    skip(columns, AT + 1)
    matched = finding(columns, "attempted_not_executed")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT, AT + 1))
    assert "amp_overflow" in matched.evidence
    assert finding(spiked(loss=90.0), "attempted_not_executed").verdict is Verdict.RULED_OUT
    untold = finding(without(spiked(loss=90.0), "executed"), "attempted_not_executed")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("executed",))


def test_executed_not_moved() -> None:
    matched = finding(
        spiked(moved=False, lr=0.0, update_norm=0.0, update_ratio=0.0, update_cosine=None), "executed_not_moved"
    )
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT,))
    assert "learning rate 0" in matched.evidence
    assert finding(spiked(loss=90.0), "executed_not_moved").verdict is Verdict.RULED_OUT
    shown = finding(without(spiked(loss=90.0), "moved"), "executed_not_moved")
    assert shown.verdict is Verdict.RULED_OUT, "an update larger than zero shows that something moved"
    bare = without(spiked(loss=90.0), "moved", "update_norm", "update_ratio")
    untold = finding(bare, "executed_not_moved")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("moved",))


def test_loss_spike_clean_transition() -> None:
    diagnosed = only(spiked(loss=90.0))
    assert diagnosed.transition == AT - 1
    matched = next(each for each in diagnosed.findings if each.id == "loss_spike_clean_transition")
    assert (matched.verdict, matched.rows) == (Verdict.MATCHED, (AT - 1, AT))
    caused = spiked(loss=90.0)
    caused["update_ratio"][AT - 1] = 0.5
    ruled_out = finding(caused, "loss_spike_clean_transition")
    assert ruled_out.verdict is Verdict.RULED_OUT
    assert f"row {AT - 1} was abnormal" in ruled_out.evidence
    untold = finding(without(spiked(loss=90.0), "update_ratio", "update_cosine"), "loss_spike_clean_transition")
    assert (untold.verdict, untold.missing) == (Verdict.CANNOT_TELL, ("update_ratio", "update_cosine"))


def test_a_loss_without_a_baseline_is_not_said_to_have_kept_to_it() -> None:
    columns = {name: values[:40] for name, values in healthy(200).items()}
    for row in (2, 3):
        skip(columns, row)
    untold = finding(columns, "loss_spike_clean_transition")
    assert untold.verdict is Verdict.CANNOT_TELL
    assert untold.evidence == "too few rows before row 2 for a baseline of the loss"


def test_a_skipped_row_is_passed_over_when_the_transition_before_is_sought() -> None:
    columns = spiked(loss=90.0)
    for row in range(AT - 20, AT):
        skip(columns, row)
        columns["grad_norm"][row] = 1.0
        columns["grad_nonfinite_params"][row] = 0
    [diagnosed] = diagnose(run_of(columns)).incidents
    assert diagnosed.incident.last_healthy == AT - 21
    columns = spiked(update_cosine=0.6)
    skip(columns, AT - 1)
    columns["loss"][AT] = 90.0
    gradient = only(columns)
    assert (gradient.incident.first_bad.signal, gradient.transition) == ("grad_norm", AT - 2)


def test_an_update_observation_points_at_its_own_row() -> None:
    assert only(spiked(update_ratio=0.5)).transition == AT


def test_forward_observations_of_two_optimizers_are_told_once() -> None:
    one, two = spiked(loss=90.0), spiked(loss=90.0)
    two["optimizer"] = ["critic"] * 200
    both = {name: [value for pair in zip(one[name], two[name], strict=True) for value in pair] for name in one}
    diagnosis = diagnose(run_of(both))
    assert [view.optimizer for view in diagnosis.views] == ["optimizer", "critic"]
    assert [each.view.optimizer for each in diagnosis.incidents] == ["optimizer"]


def test_a_log_of_losses_alone_tells_what_it_can_and_names_what_it_lacks() -> None:
    columns = {name: values for name, values in spiked(loss=90.0).items() if name in ("step", "loss")}
    diagnosed = only(columns)
    assert diagnosed.incident.first_bad.position == AT
    by_id = {each.id: each for each in diagnosed.findings}
    assert by_id["loss_nonfinite"].verdict is Verdict.RULED_OUT
    rest = {name: each for name, each in by_id.items() if name != "loss_nonfinite"}
    assert {each.verdict for each in rest.values()} == {Verdict.CANNOT_TELL}
    assert all(each.missing for each in rest.values())


def test_a_declared_micro_step_is_no_missing_attempt() -> None:
    columns = healthy(100)
    columns["loss"][60] = 50.0
    columns["attempted"][60] = columns["executed"][60] = False
    columns["skip_reason"] = ["accumulating" if row == 60 else None for row in range(100)]
    assert "no_attempt" not in matched(only(columns))


def test_a_gradient_that_carries_the_nan_of_an_earlier_micro_step_accuses_no_backward() -> None:
    columns = healthy(100)
    columns["loss"][60] = float("nan")
    columns["attempted"][60] = columns["executed"][60] = columns["executed"][61] = False
    columns["grad_norm"][60], columns["grad_norm"][61] = None, float("nan")
    columns["grad_nonfinite_params"][60], columns["grad_nonfinite_params"][61] = None, 3
    columns["skip_reason"] = [{60: "accumulating", 61: "amp_overflow"}.get(row) for row in range(100)]
    told = only(columns)
    assert "grad_nonfinite_loss_finite" not in matched(told)
    assert "loss_nonfinite" in matched(told)


def test_a_loss_that_is_nan_on_the_last_row_did_not_come_back() -> None:
    columns = healthy(100)
    columns["loss"][99] = float("nan")
    assert only(columns).incident.persistence == "diverged"
