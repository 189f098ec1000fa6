"""What a comparison amounts to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from spikeview.format import number, plural, shown
from spikeview.rules.comparison.learned import before_critical, learning, movement
from spikeview.rules.comparison.pair import Comparison

HARDLY = 0.1
HALF = 0.5
SLOWER = 0.8
LARGER = 1.25
ALWAYS = 0.95


class Answer(StrEnum):
    """Whether the run is the better one. The last four are no success."""

    BETTER = "better"
    ALIKE = "alike"
    CANNOT_TELL = "cannot_tell"
    HARDLY_MOVES = "hardly_moves"
    LEARNS_LESS = "learns_less"
    STILL_UNSTABLE = "still_unstable"
    LESS_STABLE = "less_stable"


SUCCESS = (Answer.BETTER, Answer.ALIKE)


@dataclass(frozen=True)
class Conclusion:
    """The answer, why, and what else is worth knowing; each a sentence without a full stop."""

    answer: Answer
    why: str
    notes: tuple[str, ...]


def conclude(comparison: Comparison) -> Conclusion:
    """The answer from stability first, then from what was learned over the steps before either run went critical."""
    answer, why = _answer(comparison)
    return Conclusion(answer, why, tuple(_notes(comparison)))


def _answer(comparison: Comparison) -> tuple[Answer, str]:
    critical, lost = comparison["critical"], comparison["nonfinite_rows"]
    before, after = critical.baseline or 0, critical.run or 0
    bad, still = lost.baseline or 0, lost.run or 0
    stable = f"critical incidents {before:.0f} to {after:.0f}, rows not finite {bad:.0f} to {still:.0f}"
    calm = min(before_critical(trace) for trace in (comparison.baseline, comparison.run))
    learned = learning(comparison, calm)
    if learned is None:
        return Answer.CANNOT_TELL, f"too few losses to compare, over {plural(comparison.horizon, 'executed step')}"
    moved = movement(comparison, calm)
    if moved is not None and moved < HARDLY and learned.hardly:
        return (
            Answer.HARDLY_MOVES,
            f"its updates are {number(moved)} times the baseline's, and {learned}; {stable}",
        )
    if after > before or (after == before and still > bad):
        return Answer.LESS_STABLE, f"{stable}; {learned}"
    if after and after == before:
        return Answer.STILL_UNSTABLE, f"{stable}; {learned}"
    if learned.less:
        return Answer.LEARNS_LESS, f"{learned}; {stable}"
    better = after < before or still < bad or learned.more
    seen = comparison["incidents"]
    if not better and (seen.run or 0) > (seen.baseline or 0):
        return Answer.LESS_STABLE, f"incidents {seen.baseline or 0:.0f} to {seen.run:.0f}, {stable}; {learned}"
    return Answer.BETTER if better else Answer.ALIKE, f"{learned}; {stable}"


def _notes(comparison: Comparison) -> Iterator[str]:
    clipped = comparison["clip_share"]
    if clipped.run is not None and clipped.run > ALWAYS:
        yield f"the run clips {100 * clipped.run:.0f} % of its steps: max_norm sets their size"
    speed, memory = comparison["steps_per_second"].ratio, comparison["memory_max"].ratio
    if speed is not None and speed < SLOWER:
        yield f"it makes {number(speed)} times as many steps per second"
    if memory is not None and memory > LARGER:
        yield f"it takes {number(memory)} times the memory"
    rates = comparison["lr_median"].ratio
    if rates is not None and not HALF < rates < 1 / HALF:
        yield f"its median learning rate is {number(rates)} times the baseline's"
    if comparison.outliers:
        held = sum(each.run is None for each in comparison.outliers)
        total = len(comparison.outliers)
        yield f"batches that began an incident in the baseline: {total}; taken without one: {held}"
    # a limit stands in the optimizer's settings, and often in the user's own as well
    differ = {(each.name.rpartition(".")[2], each.baseline, each.run) for each in comparison.changes}
    if len(differ) > 1:
        yield f"{len(differ)} settings differ: which of them made the difference, one run cannot tell"
    optimizers = [view.optimizer for view in comparison.baseline.diagnosis.views]
    if len(optimizers) > 1:
        yield f"of {len(optimizers)} optimizers the first is compared, {shown(optimizers[0])}"
    lengths = [len(trace.steps) for trace in (comparison.baseline, comparison.run)]
    if max(lengths) > 2 * min(lengths):
        yield f"the runs are of unequal length: {lengths[0]:,} and {lengths[1]:,} executed steps"
