"""What a card says of what it cannot say: shortly on a terminal, and with the reason where it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spikeview.cli import main

DRIFT = str(Path(__file__).parents[2] / "sample_runs" / "amp_clock_drift")

Captured = pytest.CaptureFixture[str]


def out_of(capsys: Captured, *arguments: str) -> str:
    main(["triage", *arguments])
    return " ".join(capsys.readouterr().out.split())


def test_a_short_run_names_the_checks_it_is_too_short_for_and_markdown_says_why(capsys: Captured) -> None:
    out = out_of(capsys, DRIFT)
    assert "; updates keep their direction; --markdown and --json say why" in out
    assert "512 it takes" not in out
    assert out.index("cannot tell without loss sum") < out.index("cannot tell: few attempts")
    assert "4 cosines of the 512 it takes" in out_of(capsys, DRIFT, "--markdown")


def test_a_spike_that_is_a_habit_is_no_incident_and_is_named(capsys: Captured, tmp_path: Path) -> None:
    losses = [2.0 + 0.01 * (row % 7) for row in range(300)]
    for row in (100, 140, 180, 220):
        losses[row] = 9.0 + 0.1 * (row == 220)
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["step,loss", *(f"{row},{loss}" for row, loss in enumerate(losses))]))
    told = "loss far out on 1 row that begins no incident, as it often is: farthest at row 220, loss 9.100"
    assert told in out_of(capsys, str(log))
    assert told in out_of(capsys, str(log), "--markdown")
    answer = json.loads(out_of(capsys, str(log), "--json"))
    [habit] = answer["habits"]
    assert (habit["signal"], habit["rows"], habit["farthest"]["row"]) == ("loss", 1, 220)
    assert [each["first_bad"]["row"] for each in answer["incidents"]] == [100, 140, 180]
    assert "habits" not in json.loads(out_of(capsys, DRIFT, "--json"))
