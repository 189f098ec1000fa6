"""A report says what is known and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spikeview.analysis.baseline import Baseline
from spikeview.report.content import content
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.rules.finding import Verdict
from spikeview.run import Run
from tests.report.conftest import Columns, make_run


def with_columns(diagnosis: Diagnosis, columns: Columns, without: Sequence[str] = ()) -> Diagnosis:
    """The same diagnosis of a run with other columns."""
    [one] = diagnosis.incidents
    kept = {name: one.view.run.table[name].to_pylist() for name in one.view.run.table.column_names}
    run = make_run({name: values for name, values in {**kept, **columns}.items() if name not in without})
    view = replace(one.view, run=run)
    return replace(diagnosis, run=run, views=(view,), incidents=(replace(one, view=view),))


@pytest.mark.parametrize("verdict", [Verdict.CANNOT_TELL, Verdict.RULED_OUT])
def test_a_transition_is_clean_only_where_that_was_found(explosion: Diagnosis, verdict: Verdict) -> None:
    [one] = explosion.incidents
    findings = (replace(one.findings[0], verdict=verdict), *one.findings[1:])
    told = content(replace(explosion, incidents=(replace(one, findings=findings),)))
    assert "clean" not in told["headline"]
    assert "after the transition at step 5: look at" in told["headline"]


@pytest.mark.parametrize(
    ("columns", "without", "says"),
    [
        ({}, (), "norm 3.892e+09, not clipped"),
        ({"clip_coef": [1.0] * 12}, (), "norm 3.892e+09, not clipped"),
        ({"clip_coef": [0.5] * 12}, (), "norm 3.892e+09, clipped"),
        ({}, ("clip_coef",), "norm 3.892e+09"),
        ({"grad_norm_source": ["at_step"] * 12}, (), "norm 3.892e+09"),
    ],
)
def test_clipping_is_denied_only_where_it_is_known(
    explosion: Diagnosis, columns: Columns, without: tuple[str, ...], says: str
) -> None:
    told = content(with_columns(explosion, columns, without))
    assert f"Its own update ({says}) then moved" in told["incidents"][0]["aftermath"]


def long_run(rows: int = 1200, bad: int = 900) -> dict[str, Any]:
    random = np.random.default_rng(3)
    loss = 2.0 * np.exp(0.03 * random.standard_normal(rows))
    loss[rows - bad :] *= 50
    norm = np.exp(0.1 * random.standard_normal(rows))
    norm[rows - bad :] *= 80
    return {
        "loss": loss,
        "grad_norm": norm,
        "attempted": [True] * rows,
        "executed": [True] * rows,
        "update_ratio": 0.01 * np.exp(0.1 * random.standard_normal(rows)),
    }


def test_a_long_incident_is_counted_to_its_end() -> None:
    [one] = content(diagnose(make_run(long_run())))["incidents"]
    assert {signal["signal"]: signal["rows"] for signal in one["signals"]} == {"loss": 900, "grad_norm": 900}


def healthy_run(rows: int, **columns: Any) -> Run:
    return make_run({**{name: values[:rows] for name, values in long_run(bad=0).items()}, **columns})


def test_no_incident_is_said_of_what_could_be_judged() -> None:
    told = content(diagnose(healthy_run(3)))
    assert told["headline"] == (
        "No incident in 3 rows; none of them has a baseline to be judged by, and cosine was not recorded; "
        "no check failed."
    )
    nothing = make_run({"executed": [True] * 50, "attempted": [True] * 50})
    assert content(diagnose(nothing))["headline"] == (
        "No incident in 50 rows; none of them has a baseline to be judged by, "
        "and loss, pre-clip norm, update ratio and cosine were not recorded; no check failed."
    )
    told = content(diagnose(healthy_run(300, update_cosine=[0.5, *[None] * 299])))
    assert " no baseline to be judged by, and cosine has none anywhere; " in told["headline"]
    assert "not recorded" not in told["headline"]


def test_what_is_often_far_out_is_not_said_to_be_inside(healthy: Diagnosis) -> None:
    often = Baseline(*[np.zeros(3)] * 4, habitual=np.array([True, False, True]))
    told = content(replace(healthy, views=(replace(healthy.views[0], baselines={"grad_norm": often}),)))
    assert "on 2 rows pre-clip norm was far out, but no farther than it often is" in told["headline"]


def test_an_unknown_transition_is_not_denied(explosion: Diagnosis) -> None:
    [one] = explosion.incidents
    [told] = content(replace(explosion, incidents=(replace(one, transition=None),)))["incidents"]
    assert "before any transition that executed" in told["headline"]
    unknown = replace(one, transition=None, transition_unknown=True)
    [told] = content(replace(explosion, incidents=(unknown,)))["incidents"]
    assert "any transition" not in told["headline"]
    assert told["why_this_transition"].endswith("is not known: executed was not recorded.")
