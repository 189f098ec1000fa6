"""`python -m recorder csv RUN`: the canonical log of a mixed-precision loop."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from recorder.__main__ import main

ROOT = Path(__file__).parents[2]


def lines(*arguments: str) -> list[dict[str, str]]:
    result = CliRunner().invoke(main, ["csv", *arguments])
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_the_canonical_columns_of_a_run_with_skips() -> None:
    rows = lines(str(ROOT / "sample_runs" / "amp_clock_drift"))
    assert list(rows[0]) == [
        "step", "lr", "grad_l2_pre_clip", "grad_l2_post_clip", "loss", "skipped", "skip_reason", "scaler_scale",
    ]  # fmt: skip
    assert [row["skipped"] for row in rows] == ["0", "0", "1", "1", "0", "0"]
    assert [row["skip_reason"] for row in rows] == ["", "", "amp_overflow", "amp_overflow", "", ""]
    assert [float(row["scaler_scale"]) for row in rows] == [65536, 65536, 65536, 32768, 16384, 16384]
    assert float(rows[0]["grad_l2_pre_clip"]) == pytest.approx(2.835, abs=5e-4)
    assert float(rows[0]["grad_l2_post_clip"]) == pytest.approx(1.0, rel=1e-5)
    assert math.isinf(float(rows[2]["grad_l2_pre_clip"]))


def test_a_file_is_written_and_counted(tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    result = CliRunner().invoke(main, ["csv", str(ROOT / "sample_runs" / "healthy"), "-o", str(out)])
    assert "600 steps" in result.stderr
    assert len(out.read_text().splitlines()) == 601


def test_a_file_that_is_there_is_replaced_only_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    out.write_text("mine")
    arguments = ["csv", str(ROOT / "sample_runs" / "healthy"), "-o", str(out)]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "exists already; give --force" in refused.stderr
    assert out.read_text() == "mine"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0
    assert len(out.read_text().splitlines()) == 601


def test_a_place_that_cannot_be_written_is_one_line_without_a_number(tmp_path: Path) -> None:
    out = tmp_path / "no" / "log.csv"
    refused = CliRunner().invoke(main, ["csv", str(ROOT / "sample_runs" / "healthy"), "-o", str(out)])
    assert refused.exit_code == 2
    assert (
        refused.stderr == f"recorder: {out}: cannot be written (No such file or directory); give a place that can be\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["no/such/run"], "no/such/run"), ([str(ROOT / "sample_runs" / "healthy"), "--optimizer", "critic"], "critic")],
)
def test_what_cannot_be_read_is_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["csv", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
