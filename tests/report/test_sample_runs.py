"""The report on recorded runs, with the figures that were published for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spikeview.importers import open_run
from spikeview.report.content import content
from spikeview.report.export import write_report
from spikeview.rules.diagnosis import Diagnosis, diagnose

SAMPLES = Path(__file__).parents[2] / "sample_runs"


@cache
def diagnosis(name: str) -> Diagnosis:
    return diagnose(open_run(SAMPLES / name))


def incident(name: str) -> dict[str, Any]:
    told = content(diagnosis(name))
    assert told["incidents_in_run"] == 1
    return dict(told["incidents"][0])


def cells(row: dict[str, Any], *places: int) -> list[str]:
    return [row["cells"][place]["text"] for place in places]


def test_a_batch_out_of_range_in_bf16() -> None:
    told = incident("bf16_explosion")
    assert told["headline"].startswith("Loss left its baseline at step 6 (3.785e+08")
    assert "after a clean transition: look at batch 6: a data outlier" in told["headline"]
    assert "norm 3.892e+09, not clipped" in told["aftermath"]
    assert "the loss of step 7, computed with what it left, was 6.02" in told["aftermath"]
    assert (told["first_bad"]["row"], told["transition"]["row"]) == (6, 5)
    rows = {row["row"]: row for row in told["neighbours"]}
    assert cells(rows[5], 0, 1) == ["0.04166", "0.4082"]
    assert cells(rows[6], 0, 1) == ["3.785e+08", "3.892e+09"]


def test_an_update_against_its_gradient() -> None:
    told = incident("update_against_gradient")
    assert told["headline"] == (
        "Cosine left its baseline at step 122 (-0.2584, -5.8 MADs) while the gradient was ordinary: "
        "look at optimizer state, a learning-rate change, a checkpoint resume."
    )
    assert told["transition"]["is_first_bad"]
    assert told["transition"]["out_of_baseline"] == ["cosine"]
    rows = {row["row"]: row for row in told["neighbours"]}
    assert cells(rows[119], 0, 1, 2, 7) == ["0.3402", "3.836", "0.2607", "+0.6308"]
    assert cells(rows[122], 0, 1, 2, 7) == ["0.09838", "1.411", "0.7087", "-0.2584"]
    assert cells(rows[123], 0, 1, 2, 7) == ["0.2803", "2.937", "0.3404", "-0.3817"]


def test_clocks_that_come_apart() -> None:
    told = incident("amp_clock_drift")
    assert told["headline"].startswith("Pre-clip norm became Inf at step 2: look at")
    assert (
        told["aftermath"]
        == "2 steps did not execute (rows 2, 3), while the scheduler went on: it is 2 ahead of the executed steps."
    )
    assert [cells(row, 0, 1, 2, 3, 4, 5) for row in told["neighbours"]] == [
        ["3.182", "2.835", "0.3527", "0.05000", "65536", "1/1/1"],
        ["7.989", "7.555", "0.1324", "0.04750", "65536", "2/2/2"],
        ["4.174", "Inf", "—", "0.04512", "65536", "3/2/3"],
        ["4.191", "Inf", "—", "0.04287", "32768", "4/2/4"],
        ["5.783", "6.435", "0.1554", "0.04073", "16384", "5/3/5"],
        ["5.694", "5.708", "0.1752", "0.03869", "16384", "6/4/6"],
    ]
    failed = content(diagnosis("amp_clock_drift"))["checks"]["failed"]
    assert [(check["id"], check["rows"]) for check in failed] == [("schedule_drift", [2, 3])]


def test_a_healthy_run() -> None:
    told = content(diagnosis("healthy"))
    assert told["headline"] == "No incident in 600 rows; 4 rows have no baseline to be judged by; no check failed."
    assert told["checks"]["failed"] == []


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
@pytest.mark.parametrize(
    "name",
    ["amp_clock_drift", "bf16_clipped", "bf16_explosion", "fp16_overflow", "healthy", "update_against_gradient"],
)
def test_every_face_of_every_run_carries_the_headline(tmp_path: Path, name: str, suffix: str) -> None:
    text = write_report(diagnosis(name), None, tmp_path / f"incident{suffix}").read_text("utf-8")
    assert content(diagnosis(name))["headline"] in text
