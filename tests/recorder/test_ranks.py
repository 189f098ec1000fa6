"""Ranks of one training, each a process that records for itself, over gloo: `tests/recorder/ranked.py` trains them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="ranks need the extra [torch]")
pytestmark = pytest.mark.skipif(
    not (hasattr(os, "fork") and torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="needs fork and gloo",
)

from recorder import FlightRecorder  # noqa: E402  # after the skip
from recorder.sample_ids import from_text  # noqa: E402  # after the skip
from recorder.store import read_run  # noqa: E402  # after the skip
from spikeview.cli import main  # noqa: E402  # after the skip
from spikeview.format import number  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.importers.all_ranks import open_ranks  # noqa: E402  # after the skip
from spikeview.moments import NONE  # noqa: E402  # after the skip

REPOSITORY = Path(__file__).parents[2]
TRAININGS = ("reduced", "killed", "accumulated", "apart", "sharded", "whole", "hybrid", "whole_of_four", "scaled")
LOCAL, GLOBAL = "local", "global"
Captured = pytest.CaptureFixture[str]


class Trained:
    """All trainings, run once: where each recorded, how its ranks ended and what they said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        done = subprocess.run(
            [sys.executable, "-m", "tests.recorder.ranked", str(folder), *TRAININGS],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        self._told = {told["name"]: told for told in map(json.loads, done.stdout.splitlines())}

    def said(self, name: str, statuses: list[int]) -> list[str]:
        """What the ranks of a training said, which must have ended so."""
        told = self._told[name]
        assert told["statuses"] == statuses, told
        return list(told["said"])

    def rows(self, name: str, rank: int = 0) -> list[dict[str, Any]]:
        run = read_run(self.folder / name, rank=rank)
        assert [event for event in run.events if event["kind"] == "recorder_fault"] == []
        return list(run.table.to_pylist())

    def column(self, name: str, column: str, rank: int = 0) -> list[Any]:
        return [row[column] for row in self.rows(name, rank)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("ranks"))


def test_four_ranks_record_each_for_itself_and_are_read_together(trained: Trained, capsys: Captured) -> None:
    trained.said("reduced", [0, 0, 0, 0])
    path = trained.folder / "reduced"
    for rank in range(4):
        assert trained.column("reduced", "batch_id", rank) == [f"{rank}-{row}" for row in range(50)]
    assert "ranks 1, 2, 3 are not shown: only rank 0 is read" in open_run(path).notes
    ranks = open_ranks(path)
    assert list(ranks.runs) == [0, 1, 2, 3]
    assert ranks.notes == ()
    [optimizer] = ranks.optimizers
    loss, norm = ranks.spread("loss", optimizer), ranks.spread("grad_norm", optimizer)
    losses = np.array([run.values("loss") for run in ranks.runs.values()])
    assert (loss.values == losses).all()
    assert (loss.lowest == losses.min(axis=0)).all()
    assert (loss.highest == losses.max(axis=0)).all()
    np.testing.assert_allclose(loss.median, np.median(losses, axis=0), rtol=1e-15)
    assert (loss.highest_rank == losses.argmax(axis=0)).all()
    assert loss.highest_rank[40] == 2
    assert (loss.highest[20:40] / loss.lowest[20:40]).max() < 1e3 < loss.highest[40] / loss.median[40]
    assert (norm.lowest == norm.highest).all()  # gradients are reduced before anybody sees them
    assert (loss.broken == NONE).all()

    assert main(["triage", "--json", "--rank", "all", str(path)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ranks"] == [0, 1, 2, 3]
    first = told["incidents"][0]
    assert first["first_bad"]["row"] == 40
    assert (first["first_bad"]["rank"], first["first_bad"]["signal"]) == (2, "loss")
    assert first["first_bad"]["batch_id"] == "2-40"
    assert first["ranks"] == [0, 1, 2, 3]
    assert {each["rank"]: each["first_row"] for each in first["seen"]}[2] == 40
    others = np.delete(losses[:, 40], 2)
    assert first["other_ranks"] == {"lowest": others.min(), "highest": others.max(), "nonfinite": 0}
    assert main(["triage", "--rank", "all", str(path)]) == 1
    text = capsys.readouterr().out
    assert "reduced (ranks 0, 1, 2, 3)" in text
    assert "first on rank 2, seen on ranks 0, 1, 2, 3" in text
    assert f"other ranks   loss {number(others.min())} to {number(others.max())} there" in text


def test_loss_and_input_are_a_ranks_own_and_the_norm_is_that_of_all(trained: Trained) -> None:
    by_rank = [trained.rows("reduced", rank) for rank in range(4)]
    for rows in zip(*by_rank, strict=True):
        for own in ("loss", "input_absmax"):
            assert len({row[own] for row in rows}) == 4
        assert len({row["grad_norm"] for row in rows}) == 1
        assert {(row["norm_scope"], row["update_scope"]) for row in rows} == {(GLOBAL, GLOBAL)}


def test_a_rank_that_is_killed_leaves_the_rows_of_all(trained: Trained, capsys: Captured) -> None:
    assert trained.said("killed", [1, -9]) == ["0 RuntimeError"]
    ranks = open_ranks(trained.folder / "killed")
    rows = {rank: run.values("row").tolist() for rank, run in ranks.runs.items()}
    assert rows[1] == list(range(12))
    assert rows[0] in (list(range(12)), list(range(13)))  # the row of the exchange that failed
    assert any("the run ended with RuntimeError" in note for note in ranks.notes)
    assert main(["triage", "--rank", "all", str(trained.folder / "killed")]) in (0, 1)
    assert "(ranks 0, 1)" in capsys.readouterr().out


def test_what_is_accumulated_without_a_reduction_is_a_ranks_own(trained: Trained) -> None:
    trained.said("accumulated", [0, 0])
    both = [trained.rows("accumulated", rank) for rank in range(2)]
    for index, rows in enumerate(zip(*both, strict=True)):
        norms = [row["grad_norm"] for row in rows]
        if index % 4 == 3:
            assert norms[0] == norms[1]
            assert [row["norm_scope"] for row in rows] == [row["update_scope"] for row in rows] == [GLOBAL, GLOBAL]
        else:
            assert abs(norms[0] - norms[1]) > 1e-3
            assert [row["norm_scope"] for row in rows] == [LOCAL, LOCAL]
            assert {row["skip_reason"] for row in rows} == {"accumulating"}


def test_whose_gradients_they_are_is_not_guessed(trained: Trained) -> None:
    assert trained.column("unwrapped", "norm_scope") == [None] * 3
    assert trained.column("unwrapped", "update_scope") == [None] * 3
    assert trained.column("whole", "norm_scope") == [GLOBAL] * 12


def test_ranks_that_do_not_step_together_are_found(trained: Trained, capsys: Captured) -> None:
    trained.said("apart", [0, 0, 0])
    reasons = [trained.rows("apart", rank)[30]["skip_reason"] for rank in range(3)]
    assert reasons == ["nonfinite_grad", "nonfinite_loss", "nonfinite_grad"], "each its own, before any exchange"
    path = str(trained.folder / "apart")
    assert main(["triage", "--json", "--rank", "all", path]) == 1
    told = json.loads(capsys.readouterr().out)
    [check] = [each for each in told["checks"] if each["id"] == "ranks_disagree"]
    assert (check["verdict"], check["severity"], check["rows"]) == ("failed", "critical", [20, 22])
    assert check["evidence"] == "at row 20 ranks 0, 2 took the step, rank 1 did not (gated); on 2 rows in all"
    assert any(
        (each["first_bad"]["row"], each["first_bad"]["rank"], each["first_bad"]["signal"]) == (30, 1, "loss")
        for each in told["incidents"]
    ), "the rank whose loss it was, not the one that got its gradient"
    main(["triage", "--json", path])
    alone = {each["id"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert (alone["ranks_disagree"]["verdict"], alone["ranks_disagree"]["evidence"]) == (
        "cannot_tell",
        "1 of 3 ranks read",
    )
    main(["triage", "--json", "--rank", "all", str(trained.folder / "reduced")])
    together = {each["id"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert together["ranks_disagree"]["evidence"] == "4 ranks took the same steps"


@pytest.mark.parametrize(("name", "whole", "world"), [("sharded", "whole", 2), ("hybrid", "whole_of_four", 4)])
def test_the_norm_of_a_sharded_model_is_that_of_the_whole(trained: Trained, name: str, whole: str, world: int) -> None:
    said = [json.loads(line) for line in trained.said(name, [0] * world)]
    for each in said:
        assert (each["exchanges"], each["alone"]) == ([1], 0), "one for a clipping, as torch's own; none to measure"
        assert each["norms"] == said[0]["norms"]
    reference = trained.rows(whole)
    held = [trained.rows(name, rank) for rank in range(world)]
    shares = held[: world // 2] if name == "hybrid" else held  # of four ranks two hold the same shares
    close = {"rel": 1e-5, "abs": 1e-7}
    for index, (one, *rows) in enumerate(zip(reference, *held, strict=True)):
        for row in rows:
            assert row["norm_scope"] == (LOCAL if index == 5 else GLOBAL)
            assert row["update_scope"] == LOCAL
            if index == 5:
                assert row["clip_coef"] is None
            else:
                assert row["clip_coef"] == pytest.approx(one["clip_coef"], **close)
                assert row["grad_norm"] == pytest.approx(one["grad_norm"], **close)
                assert row["grad_none_params"] == one["grad_none_params"] == 1
                if index == 6:  # measured share by share, while torch's own clipping told the norm
                    assert (row["grad_norm_source"], row["top_group"]) == ("observed", None)
                else:
                    assert row["top_group"] == one["top_group"]
                    assert row["top_group_share"] == pytest.approx(one["top_group_share"], **close)
        together = [rank[index] for rank in shares]
        for column in ("update_norm", "param_norm", *(["grad_norm"] if index == 5 else [])):
            square = sum(row[column] ** 2 for row in together)
            assert square**0.5 == pytest.approx(one[column], rel=1e-4), (index, column)


def test_the_layers_of_a_sharded_model(trained: Trained) -> None:
    def layers(name: str) -> dict[tuple[int, str], float | None]:
        found = read_run(trained.folder / name).layers
        return {(line["row"], line["name"]): line["grad_norm"] for line in found.to_pylist()}

    whole, sharded = layers("whole"), layers("sharded")
    assert sharded.keys() == whole.keys()
    for (row, name), norm in whole.items():
        if norm is None:
            assert (name, sharded[row, name]) == ("spare", None)
        elif row not in (5, 6):  # where the recorder did not clip they are of the share
            assert sharded[row, name] == pytest.approx(norm, rel=1e-4)


def test_what_the_page_shows_runs_under_torchrun(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "ranks.md").read_text(encoding="utf-8")
    replicated, sharded, accumulated = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [commands] = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    given = [
        "import contextlib, torch",
        "from torch.utils.data import DataLoader, DistributedSampler, TensorDataset",
        "torch.set_num_threads(1)",
        "x, loss_fn, last = torch.randn(9000, 8), torch.nn.functional.mse_loss, False",
        "data = TensorDataset(x, x.sum(1, keepdim=True))",
        "loader = DataLoader(data, batch_size=100, sampler=DistributedSampler(data, 2, int(os.environ['RANK'])))",
        "model = torch.nn.Linear(8, 1)",
        replicated,
        "recorder = FlightRecorder('runs/accumulated', model, optimizer, max_norm=1.0)",
        accumulated,
        "recorder.close()",
        "model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 1))",
        "model.layers = list(model)",
        sharded,
        "with recorder, recorder.transition() as t:",
        "    loss_fn(model(x), y).backward()",
        "    t.clip_grad_norm_()",
        "    optimizer.step()",
        "distributed.destroy_process_group()",
    ]
    (tmp_path / "train.py").write_text("\n".join(["import os", *given]))
    lines = [line.partition("#")[0].split() for line in commands.splitlines()]
    assert [line[0] for line in lines] == ["torchrun", "spikeview", "spikeview"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", *lines[0][1:]]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    subprocess.run(torchrun, cwd=tmp_path, check=True, capture_output=True, timeout=300, env=environment)
    for name, norm, update in (("mlp", GLOBAL, GLOBAL), ("accumulated", None, None), ("sharded", GLOBAL, LOCAL)):
        for rank in range(2):
            last = read_run(tmp_path / "runs" / name, rank=rank).table.to_pylist()[-1]
            assert (last["norm_scope"], last["update_scope"]) == (norm, update), name
    held = []
    for rank in range(2):
        for text in read_run(tmp_path / "runs" / "mlp", rank=rank).table["batch_id"].to_pylist():
            held += from_text(text) or []
    assert sorted(held) == list(range(9000)), "each sample on one rank, once an epoch"
    for line in lines[1:]:
        command = [argument.replace("runs/mlp", str(tmp_path / "runs" / "mlp")) for argument in line[1:]]
        assert main(command) in (0, 1)


def test_an_overflow_in_the_share_of_one_rank_skips_on_all(trained: Trained) -> None:
    trained.said("scaled", [0, 0])
    for rank in range(2):
        bad = trained.rows("scaled", rank)[3]
        assert (bad["executed"], bad["skip_reason"], bad["grad_norm"]) == (False, "amp_overflow", float("inf"))
        assert (bad["grad_nonfinite_params"], bad["first_nonfinite_param"], bad["clip_coef"]) == (1, "0.weight", None)
        assert trained.column("scaled", "executed_n", rank)[-1] == 5


def test_ranks_that_accumulate_unevenly_are_set_side_by_side_by_their_steps(tmp_path: Path) -> None:
    for rank, micro_batches in enumerate((4, 3)):
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with FlightRecorder(tmp_path / "run", model, optimizer, rank=rank) as recorder:
            for step in range(5):
                for micro_step in range(micro_batches):
                    last = micro_step == micro_batches - 1
                    with recorder.transition(accumulating=not last) as t:
                        t.observe_loss(float(step))
                        if last:
                            optimizer.step()
    loss = open_ranks(tmp_path / "run").spread("loss", "optimizer")
    both = ~np.isnan(loss.values).any(axis=0)
    assert both.sum() == 15
    assert (loss.lowest[both] == loss.highest[both]).all()


def test_local_shares_stand_apart_without_being_odd(trained: Trained, capsys: Captured) -> None:
    assert json.loads((trained.folder / "sharded" / "run.json").read_text())["model"]["sharded"] is True
    for name in ("sharded", "hybrid"):
        main(["triage", "--json", "--rank", "all", str(trained.folder / name)])
        checks = {each["id"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
        assert checks["rank_outlier"]["verdict"] != "failed", checks["rank_outlier"]
        assert "pre-clip norm" not in checks["rank_outlier"]["evidence"]
