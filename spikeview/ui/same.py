"""An incident found again in a later diagnosis of the same run."""

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
