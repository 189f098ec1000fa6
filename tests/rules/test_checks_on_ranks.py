"""The check on several ranks, each recorded by a loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from recorder import FlightRecorder  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.importers.all_ranks import open_ranks  # noqa: E402  # after the skip
from spikeview.rules.across_ranks import diagnose_ranks  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.rules.finding import CheckResult, Outcome  # noqa: E402  # after the skip
from tests.rules.recorded import check, mlp, sgd  # noqa: E402  # after the skip

RANKS = 4
Spoil = Callable[[int, int, Any], Any]


def trained(
    path: Path,
    spoil: Spoil,
    ranks: int = RANKS,
    rows: int = 120,
    reduced: bool = False,
    each_row: Callable[[int, int, Any], None] = lambda rank, row, optimizer: None,
) -> CheckResult:
    """The answer on ranks that take steps of their own on batches of their own; `spoil` changes a rank's targets."""
    torch.set_num_threads(1)
    for rank in range(ranks):
        torch.manual_seed(3)
        model = mlp()
        optimizer = sgd(model)
        generator = torch.Generator().manual_seed(5 if reduced else 100 + rank)
        with FlightRecorder(path, model, optimizer, rank=rank, max_norm=1.0, deep_every=0) as recorder:
            for row in range(rows):
                x = torch.randn(16, 8, generator=generator)
                y = spoil(rank, row, x.sum(1, keepdim=True) + 0.3 * torch.randn(16, 1, generator=generator))
                each_row(rank, row, optimizer)
                with recorder.transition(batch_id=row) as t:
                    optimizer.zero_grad()
                    loss = torch.nn.functional.mse_loss(model(x), y)
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_()
                    optimizer.step()
    runs = {rank: open_run(path, rank) for rank in range(ranks)}
    return check(diagnose(runs[0], runs), "rank_outlier")


def test_one_corrupted_batch_on_one_rank(tmp_path: Path) -> None:
    once = trained(tmp_path, lambda rank, row, y: y * 1000 if (rank, row) == (2, 90) else y)
    assert once.outcome is Outcome.FAILED
    assert once.evidence.startswith("rank 2 is out first, at row 90: loss ")
    assert once.rows == (90,)


def test_one_rank_with_other_labels_than_the_rest(tmp_path: Path) -> None:
    noisy = trained(tmp_path, lambda rank, row, y: y[torch.randperm(16)] if rank == 3 else y)
    assert noisy.outcome is Outcome.FAILED, noisy.evidence
    assert noisy.evidence.startswith("rank 3 is out first")


def test_ranks_that_differ_as_batches_do(tmp_path: Path) -> None:
    together = trained(tmp_path, lambda rank, row, y: y)
    assert (together.outcome, together.evidence) == (
        Outcome.PASSED,
        "4 ranks keep together in their loss and pre-clip norm",
    )


def test_two_ranks_and_reduced_losses_tell_of_no_rank(tmp_path: Path) -> None:
    two = trained(tmp_path / "two", lambda rank, row, y: y * 100 if rank else y, ranks=2, rows=20)
    assert two.outcome is Outcome.CANNOT_TELL
    same = trained(tmp_path / "same", lambda rank, row, y: y, rows=20, reduced=True)
    assert (same.outcome, same.missing) == (Outcome.CANNOT_TELL, ("input_absmax", "loss", "grad_norm"))


def test_an_incident_that_begins_in_an_update_has_its_place_among_the_ranks(tmp_path: Path) -> None:
    def jumps(rank: int, row: int, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 2.0 if (rank, row) == (1, 90) else 0.02

    trained(tmp_path, lambda rank, row, y: y, ranks=2, each_row=jumps)
    [found, *_] = diagnose_ranks(open_ranks(tmp_path)).incidents
    first = found.incident.first_bad
    assert (first.position, first.signal, found.view.run.rank) == (90, "lr", 1)
