"""FAULTS: every fault of the corpus, family by family."""

from __future__ import annotations

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults import (
    amp,
    arithmetic,
    clipping,
    data,
    logs,
    made_up,
    movement,
    optimizer,
    ranks,
    resume,
    slow,
)

FAMILIES = (data, arithmetic, optimizer, movement, resume, amp, clipping, logs, ranks, slow, made_up)
FAULTS: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.FAULTS)
