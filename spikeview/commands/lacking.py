"""What cannot be told, in few words: what a run lacks altogether is named once, and not line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from spikeview.format import label
from spikeview.rules.finding import CheckResult, Finding
from spikeview.run import Run

One = TypeVar("One", Finding, CheckResult)

NAMED = 8


def lacking(run: Run, untold: Sequence[One]) -> tuple[list[One], str, list[One]]:
    """Those that fail for want of columns that no row has, these columns in words, and the others."""
    wanting = [each for each in untold if each.missing and not any(run.recorded(name).any() for name in each.missing)]
    names = [label(name) for name in dict.fromkeys(name for each in wanting for name in each.missing)]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    others = [each for each in untold if not any(each is one for one in wanting)]
    return wanting, ", ".join(names[:NAMED]) + more, others
