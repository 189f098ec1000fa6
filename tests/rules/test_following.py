"""A run that is followed in pieces of any size gets exactly the diagnosis of all of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorder.store import RunWriter
from spikeview.analysis import drift, observations
from spikeview.importers import open_run
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.rules.triage import triage
from spikeview.run import Run
from tests.analysis.series import healthy, run_of, skip

SAMPLES = Path(__file__).parents[2] / "sample_runs"
Generator = np.random.Generator

PARTS = ("center", "lower", "upper", "deviation", "habitual", "judged", "far")


def assert_same(found: Diagnosis, whole: Diagnosis) -> None:
    """Every verdict, number and text, and every row of every baseline."""
    assert triage(found) == triage(whole)
    assert [repr(each.incident) for each in found.incidents] == [repr(each.incident) for each in whole.incidents]
    for view, other in zip(found.views, whole.views, strict=True):
        assert list(view.baselines) == list(other.baselines)
        for column, baseline in view.baselines.items():
            for part in PARTS:
                own, wanted = (np.asarray(getattr(each, part)) for each in (baseline, other.baselines[column]))
                assert np.array_equal(own, wanted, equal_nan=True), (view.optimizer, column, part)


def readings(run: Run, random: Generator, steps: list[int], rows: int) -> Iterator[Run]:
    """The run as it grows, by one of the steps each time; the rows before the new ones may be others by then."""
    reading = replace(run, table=run.table.slice(0, rows), _cache={}, _views={}, _before={})
    yield reading
    while rows < len(run):
        unchanged = max(0, rows - int(random.choice([0, 0, 1, 3, 40])))
        rows = min(len(run), rows + int(random.choice(steps)))
        newer = replace(run, table=run.table.slice(0, rows), _cache={}, _views={}, _before={})
        reading = newer.succeeding(reading, unchanged)
        yield reading


def followed(run: Run, random: Generator, steps: list[int], first: int) -> int:
    """How often a diagnosis went on from the one before; now and then and at the end it is compared with the whole."""
    found, went_on = None, 0
    for reading in readings(run, random, steps, first):
        done = len(reading) == len(run)
        if found is not None and not done and random.random() < 0.3:
            continue  # more rows came than a diagnosis kept up with
        found = diagnose(reading, before=found)
        went_on += any(each.observations.since > 0 for each in found.grounds.values())
        if done or random.random() < 0.1:
            assert_same(found, diagnose(replace(reading, _cache={}, _views={}, _before={})))
    return went_on


def losses(random: Generator, rows: int) -> Any:
    """Of the kinds that are judged in different ways: by a band, by habit, by their level, on a linear scale."""
    kinds = {
        "steady": lambda: 2 * np.exp(0.05 * random.standard_normal(rows)),
        "falling": lambda: 2.5 * np.exp(-np.arange(rows) / 200 + 0.05 * random.standard_normal(rows)),
        "heavy": lambda: 2 * np.exp(0.05 * random.standard_t(3, rows)),
        "wandering": lambda: 2 * np.exp(np.cumsum(0.01 * random.standard_normal(rows))),
        "signed": lambda: random.standard_normal(rows),
    }
    return kinds[str(random.choice(list(kinds)))]()


def faulty(random: Generator, rows: int) -> dict[str, list[Any]]:
    """Columns of a run with up to seven faults, of one row or of hundreds."""
    columns = healthy(rows, int(random.integers(1 << 30)))
    loss, norm = losses(random, rows), np.array(columns["grad_norm"])
    for _ in range(random.integers(0, 8)):
        first, count = int(random.integers(rows)), int(random.choice([1, 2, 5, 20, 100, 400]))
        part = slice(first, first + count)
        own = range(*part.indices(rows))
        match random.integers(0, 9):
            case 0:
                loss[part] *= random.choice([1.3, 2, 10])
            case 1:
                loss[part] = random.choice([np.nan, np.inf])
            case 2:
                norm[part] *= random.choice([3, 30])
            case 3:
                for row in own[:20]:
                    skip(columns, row)
                    norm[row] = np.inf
            case 4:
                columns["update_cosine"][part] = [-0.6] * len(own)
            case 5:
                ratios = columns["update_ratio"][part]
                columns["update_ratio"][part] = [None if each is None else 20 * each for each in ratios]
            case 6:
                columns["lr"][part] = [each * random.choice([5, 20]) for each in columns["lr"][part]]
            case 7:
                columns["executed"][part], columns["moved"][part] = [True] * len(own), [False] * len(own)
            case 8:
                loss[part] *= 1.005 ** np.arange(len(own))
    return {**columns, "loss": list(loss), "grad_norm": list(norm), **odd(random, rows, columns)}


def odd(random: Generator, rows: int, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns that not every run has, or not like this."""
    found: dict[str, list[Any]] = {}
    at = int(random.integers(1, rows))
    if random.random() < 0.2:
        found["update_cosine"] = [each if row % 10 == 0 else None for row, each in enumerate(columns["update_cosine"])]
    if random.random() < 0.4:
        found["loss_scale"] = [65536.0 * 2 ** (row // 300) for row in range(rows)]
    if random.random() < 0.4:
        back = int(random.integers(0, at))
        found["segment"] = [0] * at + [1] * (rows - at)
        found["step"] = [*range(at), *range(at - back, rows - back)]
    if random.random() < 0.3:
        found["user_stage"] = [0.0] * at + [1.0] * (rows - at)
    if random.random() < 0.2:
        found["grad_none_params"] = [0] * at + [3] * (rows - at)
    if random.random() < 0.3:
        found["optimizer"] = [f"optimizer {row % 2}" for row in range(rows)]
    return found


@pytest.fixture(params=[20, 1024])
def back(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How far behind the last row a diagnosis goes on; levels are sampled in runs that are not long either."""
    monkeypatch.setattr(observations, "BACK", request.param)
    monkeypatch.setattr(drift, "SAMPLED_FROM", 160)
    return int(request.param)


@pytest.mark.parametrize("seed", range(6))
def test_a_run_with_faults(back: int, seed: int) -> None:
    random = np.random.default_rng([seed, back])
    rows = 2400 if back == 1024 else int(random.choice([60, 300, 1200]))
    followed(run_of(faulty(random, rows)), random, [1, 2, 30, 150, 600], int(random.integers(1, rows)))


def test_single_rows_one_after_the_other(back: int) -> None:
    random = np.random.default_rng(back)
    columns = healthy(170)
    columns["loss"][125:133] = [40.0] * 8
    columns["loss"][145] = float("nan")
    skip(columns, 115)
    assert followed(run_of(columns), random, [1], 110) > 20 or back == 1024


def test_a_healthy_run_is_diagnosed_from_where_the_last_diagnosis_was_sure(back: int) -> None:
    run = run_of(healthy(2000))
    first = diagnose(replace(run, table=run.table.slice(0, 1900), _cache={}))
    newer = replace(run, _cache={}).succeeding(first.run, 1899)
    found = diagnose(newer, before=first)
    assert found.grounds["optimizer"].observations.since == 1900 - back
    assert_same(found, diagnose(run))


def test_rows_that_were_rewritten_are_judged_anew(back: int) -> None:
    run = run_of(healthy(2000))
    first = diagnose(replace(run, table=run.table.slice(0, 1900), _cache={}))
    columns = healthy(2000)
    columns["loss"][100] = 40.0
    other = run_of(columns)
    assert_same(diagnose(other.succeeding(first.run, 100), before=first), diagnose(run_of(columns)))
    assert_same(diagnose(run_of(columns), before=first), diagnose(run_of(columns)))  # of another run nothing is known


def test_a_column_that_appears_late(back: int) -> None:
    columns = healthy(1500)
    columns["update_cosine"] = [None] * 1400 + columns["update_cosine"][1400:]
    run = run_of(columns)
    bare = run.table.slice(0, 1300).drop_columns(["update_cosine"])
    first = diagnose(replace(run, table=bare, _cache={}))
    newer = replace(run, _cache={}).succeeding(first.run, 1300)
    assert_same(diagnose(newer, before=first), diagnose(run))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/run.json")))
def test_the_sample_runs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(observations, "BACK", 64)
    run = open_run(SAMPLES / name)
    followed(run, np.random.default_rng(3), [1, 30, 60], len(run) // 2)


@pytest.mark.parametrize("rises", [1.0, 3.0])
def test_a_loss_that_stays_up_is_followed_without_the_rows_before(back: int, rises: float) -> None:
    columns = healthy(6000)
    columns["loss"] = list(np.array(columns["loss"]) * np.where(np.arange(6000) < 1500, 1, rises))
    run = run_of(columns)
    first = diagnose(replace(run, table=run.table.slice(0, 5900), _cache={}))
    assert first.grounds["optimizer"].observations.row >= 5900 - 4 * back
    found = diagnose(replace(run, _cache={}).succeeding(first.run, 5900), before=first)
    assert found.grounds["optimizer"].observations.since >= 5900 - 4 * back
    assert_same(found, diagnose(run))


def test_a_live_run_that_goes_back_and_on(tmp_path: Path, back: int) -> None:
    columns = healthy(400)
    columns["loss"][250:260] = [30.0] * 10
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    path, found = tmp_path / "live", None

    def recorded(writer: RunWriter, some: list[dict[str, Any]]) -> None:
        for row in some:
            known = {**row, "row": writer.next_row, "segment": writer.segment}
            writer.append({**known, "loss": None}, pending=True)
            writer.amend(known)
            writer.next_row += 1

    writer = RunWriter.create(path, {})
    recorded(writer, rows[:200])
    reading = open_run(path)
    for part in (rows[200:230], rows[230:255], rows[255:300], None, rows[150:152], rows[152:260], rows[260:400]):
        if part is None:
            writer.close()
            writer = RunWriter.create(path, {}, resume=True)
        else:
            recorded(writer, part)
        reading = reading.refresh()
        found = diagnose(reading, before=found)
        assert_same(found, diagnose(open_run(path)))
    writer.close()
    assert len(reading) == 550
    assert reading.abandoned.any()
