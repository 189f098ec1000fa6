from __future__ import annotations

import json
from typing import Any

import pytest

from spikeview.report.content import content
from spikeview.report.errors import ReportError
from spikeview.rules.diagnosis import Diagnosis


def cells(row: dict[str, Any]) -> list[str]:
    return [cell["text"] for cell in row["cells"]]


def test_the_headline_names_the_signal_the_step_the_transition_and_the_place_to_look(explosion: Diagnosis) -> None:
    told = content(explosion)
    assert told["headline"] == (
        "Loss left its baseline at step 6 (3.785e+08, +9.1e+10 MADs) after a clean transition: "
        "look at batch 6: a data outlier, a distribution boundary, a logging misalignment."
    )
    assert told["incidents"][0]["aftermath"] == (
        "Its own update (norm 3.892e+09, not clipped) then moved the weights by 3.978e+08 times their size; "
        "the loss of step 7, computed with what it left, was 6.020e+15."
    )


def test_the_findings_are_told_in_the_order_of_the_diagnosis(explosion: Diagnosis) -> None:
    findings = content(explosion)["incidents"][0]["findings"]
    assert [found["id"] for found in findings["matched"]] == ["loss_spike_clean_transition", "large_norm_tiny_coef"]
    assert [found["id"] for found in findings["ruled_out"]] == ["loss_nonfinite"]
    assert [found["missing"] for found in findings["cannot_tell"]] == [["moved", "update_norm"]]
    assert list(findings) == ["matched", "cannot_tell", "ruled_out"]


def test_where_it_happened(explosion: Diagnosis) -> None:
    bad = content(explosion, 1)["incidents"][0]["first_bad"]
    assert (bad["row"], bad["step"]["value"], bad["rank"], bad["optimizer"]) == (6, 6, 0, "optimizer")
    assert (bad["batch_id"]["text"], bad["signal"], bad["text"]) == ("6", "loss", "3.785e+08")


def test_the_transition_stands_beside_its_baseline(explosion: Diagnosis) -> None:
    transition = content(explosion)["incidents"][0]["transition"]
    values = {value["name"]: value for value in transition["values"]}
    assert transition["row"] == 5
    assert (values["loss"]["text"], values["loss"]["center"], values["loss"]["deviation"]) == (
        "0.04170",
        "0.04160",
        "+0.0",
    )
    assert (
        list(values).index("loss")
        < list(values).index("grad_norm")
        < list(values).index("executed")
        < list(values).index("update_ratio")
    )
    assert values["clip_coef"]["kind"] == "not_applicable"
    assert values["max_norm"]["kind"] == "not_recorded"
    assert "loss_p99" in transition["not_recorded"]


def test_the_five_kinds_of_a_cell_stay_apart(skips: Diagnosis) -> None:
    rows = content(skips)["incidents"][0]["neighbours"]
    skipped, nan = rows[2], rows[6]
    assert cells(skipped) == ["4.174", "Inf", "—", "0.04512", "65536", "3/2/3", "—", "—"]
    assert [skipped[role] for role in ("skipped", "first_bad", "transition")] == [True, True, False]
    assert rows[1]["transition"]
    assert [nan["cells"][0][key] for key in ("kind", "value", "text")] == ["nan", "nan", "NaN"]
    moved = content(skips)["incidents"][0]["transition"]["values"][8]
    assert [moved[key] for key in ("name", "kind", "value", "text")] == ["moved", "not_recorded", None, "ø"]


def test_the_published_dump_comes_out_in_its_columns(skips: Diagnosis) -> None:
    told = content(skips)["incidents"][0]
    assert told["neighbour_columns"] == ["loss", "norm", "coef", "lr", "scale", "att/exe/sch", "ratio", "cos"]
    assert cells(told["neighbours"][0]) == [
        "3.182",
        "2.835",
        "0.3527",
        "0.05000",
        "65536",
        "1/1/1",
        "0.07770",
        "+1",
    ]
    assert cells(told["neighbours"][5]) == [
        "5.694",
        "5.708",
        "0.1752",
        "0.03869",
        "16384",
        "6/4/6",
        "0.2190",
        "+0.9650",
    ]


def test_a_nonfinite_gradient_says_how_far_ahead_of_the_loss_it_was(skips: Diagnosis) -> None:
    told = content(skips, 1)
    assert (
        told["headline"] == "Pre-clip norm became Inf at step 2, 4 rows before the loss did: "
        "look at AMP overflow; custom backward."
    )
    assert told["title"] == "Incident 1 of 2 in amp"
    assert [signal["rows_ahead"] for signal in told["incidents"][0]["signals"]] == [4, None]


def test_a_loss_after_a_transition_without_any_baseline_is_not_called_clean(skips: Diagnosis) -> None:
    assert content(skips, 2)["headline"].startswith(
        "Loss became NaN at step 6 after the transition at step 5: look at batch g"
    )


def test_all_incidents_where_none_is_chosen(skips: Diagnosis) -> None:
    told = content(skips)
    assert [one["number"] for one in told["incidents"]] == [1, 2]
    assert told["headline"] == "2 incidents in 8 rows; 1 check failed."
    assert told["checks"]["failed"][0]["rows"] == [2, 3, 6]
    assert [event["text"] for event in told["run"]["event_rows"]] == ["trigger nonfinite", "look here"]


def test_a_run_without_incidents_says_so_and_keeps_checks_and_manifest(healthy: Diagnosis) -> None:
    told = content(healthy)
    assert told["headline"] == (
        "No incident in 3 rows; none of them has a baseline to be judged by, "
        "and update ratio and cosine were not recorded; no check failed."
    )
    assert told["incidents"] == []
    assert told["checks"]["passed"][0]["id"] == "skip_rate"
    assert told["run"]["manifest_rows"] == [["seed", "7"]]


@pytest.mark.parametrize("number", [0, -1, 3])
def test_an_unknown_incident_gets_one_line_that_says_how_many_there_are(skips: Diagnosis, number: int) -> None:
    with pytest.raises(ReportError) as caught:
        content(skips, number)
    assert (
        str(caught.value)
        == f"There is no incident {number}: amp has 2 incidents, 1 to 2. Leave the number out for the whole run."
    )


def test_an_incident_of_a_healthy_run(healthy: Diagnosis) -> None:
    with pytest.raises(ReportError, match="healthy has no incident"):
        content(healthy, 1)


def test_the_content_is_json_without_a_private_path(skips: Diagnosis) -> None:
    text = json.dumps(content(skips), allow_nan=False)
    assert "private" not in text
