"""The checks on several ranks: one sees other data or computes otherwise than the rest, or steps where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from recorder.store.reader import name_ranks
from spikeview.cells import Kind
from spikeview.format import label, number, plural, shown
from spikeview.moments import NONE
from spikeview.ranks import Ranks
from spikeview.rules.finding import Outcome
from spikeview.rules.seen import Seen
from spikeview.rules.verdict import Answer, unknown, untold
from spikeview.rules.wording import row_of
from spikeview.run import Floats, Run

COLUMNS = ("input_absmax", "loss", "grad_norm")
ENOUGH = 3
FAR = 10.0
FLOOR = 0.01
WINDOW = 64
BIAS = 1.0
CUT = 3.0
SAME = 1e-9


@dataclass(frozen=True)
class Odd:
    """A rank that lies far from the others: `rows` index the rows that all ranks have, in order."""

    rank: int
    column: str
    rows: NDArray[np.int64]
    value: float
    rest: float


def rank_outlier(seen: Seen) -> Answer:
    """One rank's input, loss or gradient lies far from those of the others on a row, or to one side over many.

    Distance is counted in the usual distance of a rank from the median of all; what is the same on every rank was
    reduced before it was recorded, and tells of none of them.
    """
    ranks = {rank: _rows_of_one(run) for rank, run in sorted(seen.ranks.items())}
    if len(ranks) < 2:
        return _alone(seen)
    if len(ranks) < ENOUGH:
        return untold("of two ranks neither can be called the odd one", "rank")
    places = _shared_rows(ranks)
    columns = [column for column in COLUMNS if column != "grad_norm" or not _is_of_shares(ranks)]
    own = {column: values for column in columns if (values := _across(ranks, places, column)) is not None}
    if not own:
        return untold("nothing recorded that is a rank's own: it is missing, or the same on all", *COLUMNS)
    found = [odd for column, values in own.items() if (odd := _odd(list(ranks), column, values)) is not None]
    if not found:
        kept = " and ".join(label(column) for column in own)
        return Answer(Outcome.PASSED, f"{plural(len(ranks), 'rank')} keep together in their {kept}")
    odd = min(found, key=lambda each: int(each.rows[0]))
    at = places[odd.rank][odd.rows]
    text = f"rank {odd.rank} is out first, at row {row_of(ranks[odd.rank], int(at[0]))}: {label(odd.column)} "
    text += f"{number(odd.value)} where the others have {number(odd.rest)}; on {plural(len(at), 'row')} in all"
    return Answer(Outcome.FAILED, text, places.get(seen.run.rank, at)[odd.rows] if seen.run.rank in places else at)


def ranks_disagree(seen: Seen) -> Answer:
    """At one moment some ranks took the step and others did not: from there on their parameters are not the same."""
    if len(seen.ranks) < 2:
        return _alone(seen)
    ranks = Ranks(seen.run.path, seen.ranks)
    apart: list[tuple[int, str, NDArray[np.int64]]] = []
    judged = False
    for optimizer in ranks.optimizers:
        executed = ranks.spread("executed", optimizer)
        told = executed.kinds == Kind.FINITE
        judged |= bool((told.sum(axis=0) > 1).any())
        moments = np.flatnonzero(executed.lowest < executed.highest)  # False is 0
        if len(moments):
            apart.append((int(executed.aligned.rows[moments[0]]), optimizer, moments))
    if not apart:
        if not judged:
            return unknown("executed")
        return Answer(Outcome.PASSED, f"{plural(len(seen.ranks), 'rank')} took the same steps")
    _, optimizer, moments = min(apart)
    aligned = ranks.aligned(optimizer)
    own = aligned.positions[aligned.ranks.index(seen.run.rank), moments] if seen.run.rank in aligned.ranks else moments
    text = _told_apart(ranks, optimizer, int(moments[0]))
    return Answer(Outcome.FAILED, f"{text}; on {plural(len(moments), 'row')} in all", own[own != NONE])


def _told_apart(ranks: Ranks, optimizer: str, moment: int) -> str:
    """`at row 20 rank 0 took the step, rank 1 did not (gated)`."""
    executed, aligned = ranks.spread("executed", optimizer), ranks.aligned(optimizer)
    sides: dict[float, list[int]] = {1.0: [], 0.0: []}
    reasons = set()
    for place, rank in enumerate(aligned.ranks):
        taken = executed.values[place, moment]
        if taken in sides:
            sides[taken].append(rank)
        if taken == 0:
            rows = ranks.runs[rank].of(optimizer)
            reasons.add(rows.text("skip_reason", int(aligned.positions[place, moment])))
    why = ", ".join(sorted(shown(reason.replace("_", " ")) for reason in reasons if reason))
    steppers, others = name_ranks(sides[1.0]), name_ranks(sides[0.0])
    return f"at row {int(aligned.rows[moment])} {steppers} took the step, {others} did not" + (
        f" ({why})" if why else ""
    )


def _alone(seen: Seen) -> Answer:
    """The answer where only one rank was read."""
    world = seen.run.manifest.get("world_size")
    if world is None:
        return unknown("rank")
    return Answer(Outcome.NOT_APPLICABLE, "one rank") if world == 1 else untold(f"1 of {world} ranks read", "rank")


def _is_of_shares(ranks: Mapping[int, Run]) -> bool:
    """Whether a norm that is local is one of a share of the parameters: shares differ, whatever the data."""
    for run in ranks.values():
        model = run.manifest.get("model")
        if isinstance(model, Mapping) and model.get("sharded") and run.equals("norm_scope", "local").any():
            return True
    return False


def _rows_of_one(run: Run) -> Run:
    """The rows of the first optimizer: what is asked for here is the same on all of them, or the first one's."""
    return run.of(run.optimizers[0]) if run.optimizers else run


def _shared_rows(ranks: Mapping[int, Run]) -> dict[int, NDArray[np.int64]]:
    """Of each rank the positions of the rows that all of them have."""
    numbers = {rank: run.values("row").astype(np.int64) for rank, run in ranks.items()}
    shared = next(iter(numbers.values()))
    for each in numbers.values():
        shared = np.intersect1d(shared, each)
    return {rank: np.searchsorted(each, shared) for rank, each in numbers.items()}


def _across(ranks: Mapping[int, Run], places: Mapping[int, NDArray[np.int64]], column: str) -> Floats | None:
    """[ranks, rows]: Inf for what is not finite, NaN for what was not recorded. None where it is no rank's own."""
    values = np.full((len(ranks), len(next(iter(places.values())))), np.nan)
    for at, (rank, run) in enumerate(ranks.items()):
        kinds, own = run.kind(column)[places[rank]], run.values(column)[places[rank]]
        values[at] = np.where(kinds == Kind.FINITE, own, np.where(kinds <= Kind.NEG_INF, np.inf, np.nan))
    full = values[:, ~np.isnan(values).any(axis=0)]
    if not full.size:
        return None
    usual, apart = np.median(full, axis=0), full.max(axis=0) - full.min(axis=0)
    finite = np.isfinite(apart)
    if finite.any() and (apart[finite] <= SAME * np.abs(usual[finite])).all() and finite.all():
        return None
    return values


def _odd(names: list[int], column: str, values: Floats) -> Odd | None:
    """The rank that is the first to lie far out, with all rows on which it does."""
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
        middle = np.median(logs, axis=0)  # NaN where a rank lacks it
        away = np.where(np.isfinite(middle), logs - middle, np.nan)
    if not np.isfinite(away).any():
        return None
    spread = max(float(np.median(np.abs(away[np.isfinite(away)]))) / 0.6745, FLOOR)
    out = np.nan_to_num(np.abs(away), nan=0.0) > FAR * spread
    out |= _one_sided(np.nan_to_num(np.clip(away / spread, -CUT, CUT), nan=0.0))
    if not out.any():
        return None
    first = int(np.argmax(out.any(axis=0)))
    odd = int(np.argmax(np.where(out[:, first], np.abs(away[:, first]), -1.0)))
    rest = float(np.median(np.delete(values[:, first], odd)))
    return Odd(names[odd], column, np.flatnonzero(out[odd]), float(values[odd, first]), rest)


def _one_sided(away: Floats) -> Mask:
    """[ranks, rows]: rows within a window over which a rank lies to one side by BIAS or more, on average."""
    sided = np.zeros(away.shape, dtype=np.bool_)
    if away.shape[1] < WINDOW:
        return sided
    total = np.concatenate([np.zeros((len(away), 1)), np.cumsum(away, axis=1)], axis=1)
    begins = np.abs(total[:, WINDOW:] - total[:, :-WINDOW]) > BIAS * WINDOW
    for offset in range(WINDOW):
        sided[:, offset : offset + begins.shape[1]] |= begins
    return sided
