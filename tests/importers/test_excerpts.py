"""A few lines cut out of a log around what went wrong: they are judged by the calm rows among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage
from tests.importers.written import opened, written

LOSS = [2.20, 2.22, 2.21, 2.24, 2.30, 5.10, 3.50, 3.20, 2.21, 2.20]
NORM = [0.25, 0.95, 2.40, 16.0, 150.0, 960.0, 350.0, 400.0, 0.26, 0.22]


def told(path: Path, first: int, losses: list[float], norms: list[float]) -> list[dict[str, Any]]:
    rows = enumerate(zip(losses, norms, strict=True), start=first)
    lines = [
        f" iteration {step}/ 99999 | lm loss: {loss:.6E} | grad norm: {norm:.3f} | number of skipped iterations:   0 |"
        for step, (loss, norm) in rows
    ]
    return list(triage(diagnose(opened(written(path, lines))))["incidents"])


def test_what_led_into_the_incident_is_found_with_one_row_before_it(tmp_path: Path) -> None:
    [incident] = told(tmp_path / "log", 31214, LOSS, NORM)
    assert (incident["first_bad"]["step"], incident["first_bad"]["signal"]) == (31215, "grad_norm")
    assert incident["lead"] == [{"signal": "grad_norm", "row": 1, "rows_ahead": 4}]
    assert (incident["last_row"], incident["persistence"]) == (7, "transient")


def test_the_first_rows_of_a_run_are_no_excerpt(tmp_path: Path) -> None:
    assert (
        told(tmp_path / "log", 1, [11.0, 9.5, 8.0, 7.1, 6.6, 6.3, 6.1, 6.0], [9.0, 4.0, 2.0, 1.5, 1.2, 1.1, 1.0, 1.0])
        == []
    )


def test_a_quiet_excerpt_has_no_incident(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for rows in range(5, 33):
        losses = 2.2 * np.exp(0.03 * random.standard_normal(rows))
        norms = 0.25 * np.exp(0.2 * random.standard_normal(rows))
        assert told(tmp_path / "log", 40_000, losses.tolist(), norms.tolist()) == []
