"""An incident found again in a later diagnosis of the same run, and those that are new in it."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import Diagnosed


def same_incident(wanted: Diagnosed, among: Sequence[Diagnosed]) -> int | None:
    """The index of the one of the same optimizer that overlaps it, None where there is none any more."""
    first, last = wanted.incident.first_bad.position, wanted.incident.last
    for index, each in enumerate(among):
        overlaps = each.incident.first_bad.position <= last and first <= each.incident.last
        if each.view.optimizer == wanted.view.optimizer and overlaps:
            return index
    return None


def begun(now: Sequence[Diagnosed], before: Sequence[Diagnosed]) -> list[Diagnosed]:
    """Those that are none of before. Most are where they were, and are not searched for one by one."""
    known = {_place(each) for each in before}
    return [each for each in now if _place(each) not in known and same_incident(each, before) is None]


def _place(diagnosed: Diagnosed) -> tuple[str, int, int]:
    return diagnosed.view.optimizer, diagnosed.incident.first_bad.position, diagnosed.incident.last
