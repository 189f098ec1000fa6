"""`spikeview compare` on pairs of recorded runs: what a change did beside removing spikes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from spikeview.cli import main  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, Step, record  # noqa: E402  # after the skip

SAMPLES = Path(__file__).parents[2] / "sample_runs"
EXPLOSION, CLIPPED, HEALTHY = (str(SAMPLES / name) for name in ("bf16_explosion", "bf16_clipped", "healthy"))

Captured = pytest.CaptureFixture[str]


def bad_at(row_of_it: int | None, factor: float = 1e4, clipped: bool = False) -> Step:
    """A step whose targets are far too large on one row; clipped only where that is asked for."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y * (factor if row == row_of_it else 1.0))
        t.observe_loss(loss)
        loss.backward()
        t.clip_grad_norm_() if clipped else t.measure_grad_norm()
        loop.optimizer.step()

    return step


def compared(capsys: Captured, baseline: object, run: object) -> tuple[int, dict[str, Any]]:
    status = main(["compare", str(baseline), str(run), "--json"])
    return status, json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def sgd(lr: float) -> Callable[[Any], Any]:
    return lambda model: torch.optim.SGD(model.parameters(), lr=lr)


@pytest.fixture(scope="module")
def exploded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loss that goes for good with the update of row 120."""
    path = tmp_path_factory.mktemp("exploded") / "run"
    record(path, bad_at(120), 240)
    return path


def measure(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in told["measures"] if each["id"] == name)


def test_a_run_with_an_incident_that_the_baseline_has_not_is_not_like_it(tmp_path: Path, capsys: Captured) -> None:
    record(tmp_path / "calm", bad_at(None, clipped=True), 240, max_norm=1.0)
    record(tmp_path / "spiked", bad_at(150, 30.0, clipped=True), 240, max_norm=1.0)
    status, told = compared(capsys, tmp_path / "calm", tmp_path / "spiked")
    assert (status, told["answer"]) == (1, "less_stable"), told["why"]
    assert told["why"].startswith("incidents 0 to 1, critical incidents 0 to 0")
    assert compared(capsys, tmp_path / "calm", tmp_path / "calm")[1]["answer"] == "alike"


def test_a_fix_that_learns_on_is_better(exploded: Path, tmp_path: Path, capsys: Captured) -> None:
    record(tmp_path / "run", bad_at(120, clipped=True), 240, max_norm=10.0)
    status, told = compared(capsys, exploded, tmp_path / "run")
    assert (status, told["answer"]) == (0, "better"), told["why"]
    assert told["executed_steps"] == 240
    assert "critical incidents 1 to 0" in told["why"]
    assert [each["executed_steps"] for each in told["trajectory"]] == [24, 60, 120, 180, 240]
    [outlier] = told["outlier_batches"]
    assert (outlier["batch_id"], outlier["row"], outlier["baseline"]["persistence"]) == ("120", 120, "diverged")
    assert outlier["run"]["persistence"] == "transient"
    assert measure(told, "clip_share")["baseline"] is None
    assert 0 < measure(told, "clip_share")["run"] < 0.5
    assert measure(told, "norm_max")["run"] > 1000, "the raw norm, not what was left of it"


def test_a_run_that_never_diverges_because_it_hardly_moves_is_named(
    exploded: Path, tmp_path: Path, capsys: Captured
) -> None:
    record(tmp_path / "run", bad_at(120, clipped=True), 240, max_norm=1e-3)
    status, told = compared(capsys, exploded, tmp_path / "run")
    assert (status, told["answer"]) == (1, "hardly_moves"), told["why"]
    assert told["why"].startswith("its updates are 0.000")
    assert any("clips 100 % of its steps" in note for note in told["notes"])
    assert main(["compare", str(exploded), str(tmp_path / "run")]) == 1
    assert "never diverges because it hardly moves" in capsys.readouterr().out


def test_the_same_again_is_alike_and_less_learned_is_said(tmp_path: Path, capsys: Captured) -> None:
    for name, lr in {"one": 0.02, "same": 0.02, "slow": 0.0005}.items():
        record(tmp_path / name, bad_at(None), 200, optimizer=sgd(lr))
    status, told = compared(capsys, tmp_path / "one", tmp_path / "same")
    assert (status, told["answer"], told["changes"]) == (0, "alike", [])
    assert measure(told, "loss_last")["ratio"] == 1
    status, told = compared(capsys, tmp_path / "one", tmp_path / "slow")
    assert (status, told["answer"]) == (1, "learns_less"), told["why"]
    assert {each["name"] for each in told["changes"]} == {"optimizers.optimizer.groups[0].lr"}
    assert "its median learning rate is 0.02500 times the baseline's" in told["notes"]


def test_a_change_that_brings_a_divergence_is_less_stable(exploded: Path, tmp_path: Path, capsys: Captured) -> None:
    record(tmp_path / "before", bad_at(None), 240)
    status, told = compared(capsys, tmp_path / "before", exploded)
    assert (status, told["answer"]) == (1, "less_stable"), told["why"]
    status, told = compared(capsys, exploded, exploded)
    assert (status, told["answer"]) == (1, "still_unstable")


def test_the_table_is_80_columns_wide_and_the_markdown_holds_the_same(capsys: Captured) -> None:
    assert main(["compare", EXPLOSION, CLIPPED]) == 0
    out = capsys.readouterr().out
    assert out.startswith("bf16_clipped beside bf16_explosion  over 12 executed steps: better than the\nbaseline\n")
    assert max(map(len, out.splitlines())) <= 80
    assert "6 diverged  1 transient" in out
    assert main(["compare", EXPLOSION, CLIPPED, "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# bf16&#95;clipped beside" if "&#95;" in text else "# bf16_clipped beside")
    assert "| pre-clip norm, largest | 3.892e+09 | 3.892e+09 | 1 |" in text


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert main(["compare", HEALTHY, str(tmp_path / "gone")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["compare", HEALTHY]) == 2
    assert main(["compare", HEALTHY, CLIPPED, "--json", "--markdown"]) == 2
