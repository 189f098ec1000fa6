"""A replay's result as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from textwrap import fill
from typing import Any

from recorder.replay.comparison import BLAMED, REFUTES
from recorder.replay.setting import printable

_WIDTH = 100


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The result in one line, the baseline, then each comparison with what would have refuted it.

    Where the baseline did not reproduce, that is the finding, and the comparisons are only named.
    """
    batch = "" if result["batch_id"] is None else f", batch {result['batch_id']}"
    where = f"replayed on {result['device']}, torch {result['torch']}"
    yield printable(f"row {result['row']}, step {result['step']}{batch}: {where}")
    yield fill(printable(f"{result['summary']}."), _WIDTH)
    yield from _told([result["reproduced"]])
    if result["reproduced"]["verdict"] == REFUTES:
        yield ""
        unjudged = [BLAMED[each["id"]] for each in result["comparisons"] if each["id"] in BLAMED]
        yield fill(f"Not judged: {', '.join(unjudged)}. What came out for them is in replay.json.", _WIDTH)
        return
    for _, alike in groupby(result["comparisons"], key=lambda comparison: comparison["outcome"]):
        yield from _told(list(alike))
    if result["updates_refused"] or result["not_evaluated"]:
        yield ""
    if result["updates_refused"]:
        yield printable(f"no steps were tried: {result['updates_refused']}")
    yield from (printable(f"not evaluated: {refusal}") for refusal in result["not_evaluated"])
    yield ""
    yield "No cause is declared from one comparison alone."


def _told(alike: list[Mapping[str, Any]]) -> Iterator[str]:
    """Comparisons of one outcome, which stands below them once."""
    yield ""
    for comparison in alike:
        yield f"{comparison['verdict'].upper():<14} {comparison['hypothesis']}"
        yield _indented(f"refuted if {comparison['refuted_if']}")
    yield _indented(alike[0]["outcome"])


def _indented(text: str) -> str:
    return fill(printable(text), _WIDTH, initial_indent=" " * 15, subsequent_indent=" " * 15)
