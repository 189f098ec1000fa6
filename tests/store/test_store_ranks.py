"""All ranks of a run read together: side by side by their steps, whatever became of single ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorder.store import RunWriter, StoreError
from spikeview.cli import main
from spikeview.importers import RunError, open_run
from spikeview.importers.all_ranks import open_ranks
from spikeview.moments import NONE
from spikeview.rules.across_ranks import diagnose_ranks

MakeRow = Callable[..., dict[str, Any]]
Write = Callable[..., RunWriter]


@pytest.fixture
def write(tmp_path: Path, make_row: MakeRow) -> Write:
    """A function that records rows of these steps as one rank; the loss is ten times the rank and the step."""

    def written(rank: int, steps: Sequence[int], close: bool = True, resume: bool = False, **columns: Any) -> RunWriter:
        writer = RunWriter.create(tmp_path / "run", {"world_size": 3}, rank=rank, resume=resume, roll_rows=20)
        for row, step in enumerate(steps, start=writer.next_row):
            own = {name: value(row) for name, value in columns.items()}
            values = {"step": step, "segment": writer.segment, "loss": 10.0 * rank + step, **own}
            writer.append(make_row(row, **values))
        if close:
            writer.close()
        return writer

    return written


def test_ranks_that_begin_in_any_order_share_a_run(write: Write, tmp_path: Path) -> None:
    for rank in (2, 0, 1):
        write(rank, range(3))
    assert list(open_ranks(tmp_path / "run").runs) == [0, 1, 2]
    with pytest.raises(StoreError, match="holds a run already"):
        write(1, range(3))


def test_ranks_of_unequal_length_are_aligned_and_the_short_ones_are_named(write: Write, tmp_path: Path) -> None:
    for rank, rows in enumerate((50, 47, 50)):
        write(rank, range(rows))
    ranks = open_ranks(tmp_path / "run")
    assert ranks.notes == ("rank 1 ends at row 46, the others at row 49",)
    loss = ranks.spread("loss", "main")
    assert loss.values.shape == (3, 50)
    assert loss.values[:, 5].tolist() == [5.0, 15.0, 25.0]
    assert np.isnan(loss.values[1, 47:]).all()
    assert (loss.lowest[-1], loss.median[-1], loss.highest[-1]) == (49.0, 59.0, 69.0)
    assert (loss.lowest_rank[0], loss.highest_rank[0]) == (0, 2)
    assert ranks.aligned("main").positions[1, 45:].tolist() == [45, 46, NONE, NONE, NONE]


def test_nan_and_infinity_are_told_apart_from_a_value_that_is_missing(write: Write, tmp_path: Path) -> None:
    spoilt = {0: [1.0, None, np.nan, None], 1: [np.inf, 2.0, -np.inf, None], 2: [3.0, np.nan, np.inf, None]}
    for rank, losses in spoilt.items():
        write(rank, range(4), loss=lambda row, losses=losses: losses[row])
    loss = open_ranks(tmp_path / "run").spread("loss", "main")
    np.testing.assert_array_equal(loss.lowest, [1.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(loss.highest, [3.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(loss.median, [2.0, 2.0, np.nan, np.nan])
    assert loss.highest_rank.tolist() == [2, 1, NONE, NONE]
    assert loss.lowest_rank.tolist() == [0, 1, NONE, NONE]
    assert loss.broken.tolist() == [1, 2, 0, NONE]


def test_a_missing_and_a_damaged_rank_cost_no_other(write: Write, tmp_path: Path) -> None:
    for rank in (0, 2):
        write(rank, range(30))
    part = tmp_path / "run/steps/rank=2/part-000000.parquet"
    part.write_bytes(part.read_bytes()[:1000])
    ranks = open_ranks(tmp_path / "run")
    assert list(ranks.runs) == [0]
    damaged, missing = ranks.notes
    assert damaged.startswith("rank 2 is left out: ")
    assert "part-000000.parquet: is damaged or truncated" in damaged
    assert missing == "rank 1 of 3 left no rows"
    (tmp_path / "run/steps/rank=0/part-000000.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"rank=0/part-000000\.parquet"):
        open_ranks(tmp_path / "run")


def test_after_a_rollback_the_ranks_are_side_by_side_again(write: Write, tmp_path: Path) -> None:
    for rank, rows in enumerate((40, 37, 39)):  # one of them died early
        write(rank, range(rows))
    for rank in range(3):
        write(rank, range(30, 45), resume=True)
    ranks = open_ranks(tmp_path / "run")
    aligned = ranks.aligned("main")
    assert aligned.steps.tolist() == [*range(40), *range(30, 45)]
    assert aligned.positions[:, -1].tolist() == [54, 51, 53]
    loss = ranks.spread("loss", "main")
    assert (loss.values[1, 40:] - loss.values[0, 40:] == 10.0).all()
    assert "rank 1: rows 30 to 36 (steps 30 to 36) were abandoned: the run went back to step 30" in ranks.notes


def test_a_rollback_within_a_segment_and_epochs_that_count_anew_are_aligned(write: Write, tmp_path: Path) -> None:
    write(0, [0, 1, 2, 3, 2, 3, 4, 0, 1, 2])
    write(1, [0, 1, 2, 3, 4, 2, 3, 4, 0, 1, 2])
    aligned = open_ranks(tmp_path / "run").aligned("main")
    assert aligned.steps.tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 0, 1, 2]
    assert aligned.positions.tolist() == [[0, 1, 2, 3, NONE, 4, 5, 6, 7, 8, 9], [*range(11)]]


def test_steps_that_tell_no_moment_leave_the_numbers_of_the_rows(write: Write, tmp_path: Path) -> None:
    write(0, [0, 0, 1, 1])
    write(1, [0, 1, 2])
    aligned = open_ranks(tmp_path / "run").aligned("main")
    assert aligned.rows.tolist() == [0, 1, 2, 3]
    assert aligned.positions.tolist() == [[0, 1, 2, 3], [0, 1, 2, NONE]]


def test_ranks_are_followed_and_a_new_one_is_seen(write: Write, tmp_path: Path, make_row: MakeRow) -> None:
    first = write(0, range(5), close=False)
    ranks = open_ranks(tmp_path / "run")
    assert ranks.refresh() is ranks
    assert ranks.notes == ("ranks 1, 2 of 3 left no rows",)
    first.append(make_row(5))
    second = write(1, range(4), close=False)
    later = ranks.refresh()
    assert {rank: len(run) for rank, run in later.runs.items()} == {0: 6, 1: 4}
    assert later.refresh() is later
    assert later.spread("loss", "main").values.shape == (2, 6)
    for writer in (first, second):
        writer.close()


def test_an_incident_is_told_once_by_the_rank_that_saw_it_first(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    for rank in range(3):
        losses = 2.0 + 0.05 * generator.standard_normal(120)
        norms = 1.0 + 0.02 * generator.standard_normal(120)
        losses[60] = np.inf if rank == 1 else losses[60]
        norms[60] = np.inf
        losses[100 if rank < 2 else 101] = 90.0
        write(
            rank,
            range(120),
            loss=losses.__getitem__,
            grad_norm=norms.__getitem__,
            attempted=lambda row: True,
            grad_nonfinite_params=lambda row: int(row == 60),
        )
    diagnosis = diagnose_ranks(open_ranks(tmp_path / "run"))
    told = [
        (each.view.run.rank, each.incident.first_bad.position, each.incident.first_bad.signal, each.ranks)
        for each in diagnosis.incidents
    ]
    assert told == [(1, 60, "loss", (0, 1, 2)), (0, 100, "loss", (0, 1, 2))]
    assert main(["triage", str(tmp_path / "run"), "--rank", "all", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [each["first_bad"]["rank"] for each in document["incidents"]] == [1, 0]
    assert document["ranks"] == [0, 1, 2]


def test_all_ranks_of_what_has_one_are_that_one(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(0, range(30))
    run = tmp_path / "run"
    assert list(open_ranks(run).runs) == [0]
    assert main(["triage", str(run), "--rank", "all", "--json"]) == main(["triage", str(run), "--json"])
    assert open_ranks(run).runs[0].table.equals(open_run(run).table)
    capsys.readouterr()


@pytest.mark.parametrize("rank", ["-1", "every", "1.5", "²", ""])
def test_what_is_no_rank_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], rank: str) -> None:
    assert main(["triage", str(tmp_path), "--rank", rank]) == 2
    assert "is no rank: give its number, or all" in capsys.readouterr().err


def test_a_world_too_large_to_be_one_is_not_counted(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {"world_size": 10**15})
    writer.append(make_row(0))
    writer.close()
    assert open_ranks(tmp_path).notes == ()
