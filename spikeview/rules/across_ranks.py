"""One diagnosis of all ranks: each incident once, told by the rank that saw it first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recorder.schema import COLUMNS
from recorder.store.reader import name_ranks
from spikeview.analysis.episodes import GAP
from spikeview.cells import Kind
from spikeview.ranks import Ranks
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, Elsewhere, diagnose
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.rules.wording import row_of

# The parts of a transition, in the order in which one causes the next.
CAUSAL = tuple(dict.fromkeys(column.phase for column in COLUMNS.values()))


@dataclass(frozen=True)
class _Sighting:
    """An incident as one rank saw it, from one moment of all ranks to another."""

    rank: int
    diagnosed: Diagnosed
    begin: int
    end: int

    @property
    def order(self) -> tuple[int, int, int]:
        """At one moment a loss comes before the gradient that it gives, and that before the update."""
        return self.begin, CAUSAL.index(self.diagnosed.incident.first_bad.phase), self.rank


def diagnose_ranks(ranks: Ranks) -> Diagnosis:
    """Everything that can be said about a training from the columns of all its ranks.

    Incidents that overlap on several ranks, or lie at most GAP rows apart, are one. The run is that of the longest
    rank, with the notes on all of them; a check's answer is the worst that a rank gives.
    """
    each = {rank: diagnose(run, ranks.runs) for rank, run in ranks.runs.items()}
    longest = max(ranks.runs, key=lambda rank: len(ranks.runs[rank]))
    run = replace(ranks.runs[longest], notes=ranks.notes)
    found = [_first_of(group, ranks) for group in _groups(_sightings(ranks, each))]
    found.sort(key=lambda sighting: sighting.order)
    incidents = tuple(sighting.diagnosed for sighting in found)
    answers = zip(*(diagnosis.checks for diagnosis in each.values()), strict=True)
    checks = tuple(_worst(dict(zip(each, answer, strict=True))) for answer in answers)
    return Diagnosis(run, each[longest].views, incidents, checks, tuple(ranks.runs))


def _sightings(ranks: Ranks, each: Mapping[int, Diagnosis]) -> Iterator[_Sighting]:
    for rank, diagnosis in each.items():
        for view in diagnosis.views:
            moments = ranks.aligned(view.optimizer).moments(rank)
            for diagnosed in diagnosis.incidents:
                if diagnosed.view is view:
                    incident = diagnosed.incident
                    begin, end = int(moments[incident.first_bad.position]), int(moments[incident.last])
                    yield _Sighting(rank, diagnosed, begin, end)


def _groups(sightings: Iterable[_Sighting]) -> Iterator[list[_Sighting]]:
    """What the ranks saw of one incident, optimizer by optimizer."""
    group: list[_Sighting] = []
    for each in sorted(sightings, key=lambda one: (one.diagnosed.view.optimizer, *one.order)):
        same = group and group[0].diagnosed.view.optimizer == each.diagnosed.view.optimizer
        if group and not (same and each.begin <= max(one.end for one in group) + GAP):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _first_of(group: Sequence[_Sighting], ranks: Ranks) -> _Sighting:
    """The first sighting, with all ranks that saw the incident, in order."""
    seen = tuple(sorted({each.rank for each in group}))
    found = replace(group[0].diagnosed, ranks=seen, elsewhere=_elsewhere(group, ranks))
    return replace(group[0], diagnosed=found)


def _elsewhere(group: Sequence[_Sighting], ranks: Ranks) -> Elsewhere:
    """The rows of each rank, and how far the others were from the first when it was first bad."""
    first = group[0]
    optimizer, signal = first.diagnosed.view.optimizer, first.diagnosed.incident.first_bad.signal
    rows: dict[int, tuple[int, int]] = {}
    for each in group:
        run, incident = each.diagnosed.view.run, each.diagnosed.incident
        begin, end = row_of(run, incident.first_bad.position), row_of(run, incident.last)
        known = rows.get(each.rank, (begin, end))
        rows[each.rank] = min(known[0], begin), max(known[1], end)
    if signal not in COLUMNS or COLUMNS[signal].dtype != "double":  # that a step was declined, or moved nothing
        return Elsewhere(rows)
    spread = ranks.spread(signal, optimizer)
    own = spread.aligned.ranks.index(first.rank)
    others = np.arange(len(spread.aligned.ranks)) != own
    values, kinds = spread.values[others, first.begin], spread.kinds[others, first.begin]
    finite = values[kinds == Kind.FINITE]
    nonfinite = int(np.count_nonzero((kinds != Kind.FINITE) & (kinds <= Kind.NEG_INF)))
    if not len(finite) or (finite == spread.values[own, first.begin]).all():  # reduced before it was recorded
        return Elsewhere(rows, nonfinite=nonfinite)
    return Elsewhere(rows, float(finite.min()), float(finite.max()), nonfinite)


def _worst(answers: Mapping[int, CheckResult]) -> CheckResult:
    """The worst answer of the ranks; where they differ, with the ranks that give it."""
    order = list(Outcome)
    rank = min(answers, key=lambda rank: order.index(answers[rank].outcome))
    worst = answers[rank]
    if all(each.evidence == worst.evidence for each in answers.values()):
        return worst
    same = [other for other, each in answers.items() if each.outcome is worst.outcome and other != rank]
    more = f"; {worst.outcome.value.replace('_', ' ')} on {name_ranks(same)} too" if same else ""
    return replace(worst, evidence=f"rank {rank}: {worst.evidence}{more}")
