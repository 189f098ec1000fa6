"""What was captured of an incident's rows, and what came of feeding them again."""

from __future__ import annotations

from typing import Any

from spikeview.captured import Replay
from spikeview.rules.diagnosis import Diagnosed
from spikeview.rules.replayed import captures_within
from spikeview.run import Run

MOST = 50


def captured(diagnosed: Diagnosed) -> list[dict[str, Any]]:
    """The captured rows from the accused transition on, that of the first bad row first, with what to do with each.

    Each has its `row`, the `command` that feeds it again (None where the run is not a directory here), and the
    `summary` of its replay, None where it was not replayed.
    """
    found = captures_within(diagnosed.view.run, diagnosed.incident, diagnosed.transition)[:MOST]
    return [
        {"row": each.row, "command": each.command, "summary": None if each.replay is None else each.replay.summary}
        for each in found
    ]


def replays(diagnosed: Diagnosed) -> list[dict[str, Any]]:
    """The replays of those rows in order, of very many the first ones.

    Each has its `row`, and its `comparisons`: what was supposed (`hypothesis`), what came out (`outcome`), and what
    that says of it (`verdict`). One that cannot be read has no comparisons, and `problem` says why.
    """
    found = captures_within(diagnosed.view.run, diagnosed.incident, diagnosed.transition)
    made = [(each.row, each.replay) for each in found if each.replay is not None]
    return [_told(row, replay) for row, replay in sorted(made, key=lambda pair: pair[0])[:MOST]]


def captured_rows(run: Run) -> list[int]:
    """The rows of which a run holds a capture."""
    return [each.row for each in run.captures]


def _told(row: int, replay: Replay) -> dict[str, Any]:
    comparisons = [
        {"hypothesis": each.hypothesis, "outcome": each.outcome, "verdict": each.verdict}
        for each in replay.comparisons.values()
    ]
    return {"row": row, "comparisons": comparisons, "problem": replay.problem}
