"""The corpus that the diagnosis is measured on: its labels hold, and its score counts what came and what did not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.diagnosis import tally
from benchmarks.diagnosis.__main__ import seeds
from benchmarks.diagnosis.case import DUE, NONE, Case
from benchmarks.diagnosis.corpus import CASES
from benchmarks.diagnosis.faults import FAULTS
from benchmarks.diagnosis.record import MADE, is_recorded, read, recorded
from benchmarks.diagnosis.score import Score, complaints, score
from benchmarks.diagnosis.setting import plan
from benchmarks.diagnosis.twin import compare
from recorder.schema import COLUMNS
from spikeview.rules.checks import CHECKS
from spikeview.rules.table import RULES


def short(name: str) -> Case:
    """A fault of the corpus in few rows, on the quickest of its loops."""
    case = replace(CASES[name], fits=lambda setting: setting.model == "mlp" and setting.precision == "fp32")
    return replace(case, rows=(60, 60), earliest=30)


def relabelled(folder: Path, onset: int) -> Path:
    made = json.loads((folder / MADE).read_text())
    (folder / MADE).write_text(json.dumps({**made, "onset": onset}))
    return folder


@pytest.mark.parametrize("name", ["input_x1000", "sqrt_zero", "lr_zero"])
def test_a_fault_changes_its_recording_first_where_its_label_says_and_is_found_there(name: str, tmp_path: Path) -> None:
    case = short(name)
    found = compare(case, 0, tmp_path)
    assert found.row == found.onset == plan(case, 0).at
    assert set(case.signals) & set(found.columns)
    assert found.deviations > 6
    assert complaints(case, score(case, recorded(case, 0, tmp_path))) == []


def test_a_label_that_does_not_hold_is_a_miss(tmp_path: Path) -> None:
    case = short("input_x1000")
    folder = recorded(case, 0, tmp_path)
    onset = plan(case, 0).at
    late = score(case, relabelled(folder, onset - 1))
    assert (late.error, late.within(0), late.within(1)) == (1, False, True)
    assert complaints(case, late) == ["onset +1"]
    assert complaints(case, score(case, relabelled(folder, onset - 35))) == ["no incident"]
    relabelled(folder, onset)
    other = replace(case, rule="executed_not_moved", perhaps=(), checks=("rank_outlier",))
    said = complaints(other, score(other, folder))
    assert said[0] == "executed_not_moved not matched"
    assert "loss_spike_clean_transition matched wrongly" in said
    assert "rank_outlier did not fail" in said


def test_a_gradual_fault_is_seen_or_not_and_has_no_exact_onset(tmp_path: Path) -> None:
    made = read(recorded(short("lr_zero"), 0, tmp_path))
    case = CASES["labels_decay"]
    seen = Score(case.name, made, error=20, rank=0, signal="loss")
    assert complaints(case, seen) == []
    assert complaints(case, replace(seen, error=None)) == ["no incident"]
    assert (tally.due([seen]), tally.gradual([seen])) == ([], [seen])


def test_an_incident_of_a_healthy_run_is_a_false_one(tmp_path: Path) -> None:
    case = replace(short("sqrt_zero"), name="healthy", cause="", incident=NONE)
    found = score(case, recorded(case, 0, tmp_path))
    assert (found.healthy_rows, [each["signal"] for each in found.false]) == (60, ["grad_norm"])
    assert tally.false_rate([found]) == tally.Rate(1, 60)


def test_a_recording_is_made_once_for_the_same_plan(tmp_path: Path) -> None:
    case = short("lr_zero")
    assert not is_recorded(case, 0, tmp_path)
    made = recorded(case, 0, tmp_path) / MADE
    first = made.stat().st_mtime_ns
    assert is_recorded(case, 0, tmp_path)
    recorded(case, 0, tmp_path)
    assert made.stat().st_mtime_ns == first
    assert not is_recorded(replace(case, rows=(50, 50)), 0, tmp_path)
    recorded(replace(case, rows=(50, 50)), 0, tmp_path)
    assert json.loads(made.read_text())["rows"] == 50


def test_half_of_the_seeds_are_even_and_the_others_odd_from_the_first_that_was_not_looked_at() -> None:
    assert seeds(8, 9) == [0, 2, 4, 6, 9, 11, 13, 15]
    assert seeds(2, 31) == [0, 31]


def test_labels_name_only_what_there_is() -> None:
    known = {rule.id for rule in RULES} | {check.id for check in CHECKS}
    for case in FAULTS:
        named = {*case.checks, *case.perhaps, *case.unknown, *([case.rule] if case.rule else [])}
        assert named <= known, case.name
        assert set(case.signals) <= set(COLUMNS), case.name
        assert case.signals if case.incident == DUE else case.checks or case.unknown, case.name
    assert len(CASES) == len({case.name for case in CASES.values()})
    assert {case.rule for case in FAULTS} >= {rule.id for rule in RULES} - {"attempted_not_executed"}


def test_bounds_are_wilson_and_exact_poisson() -> None:
    assert tally.Share(0, 10).bounds == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert tally.Share(95, 100).bounds == pytest.approx((0.8882, 0.9785), abs=1e-3)
    assert tally.Rate(0, 300_000).bounds == pytest.approx((0.0, 1.2296), abs=1e-3)
    assert tally.Rate(3, 300_000).bounds == pytest.approx((0.2062, 2.9224), abs=1e-3)
