"""The check for a loss that is an average over rows."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.cells import Kind, chosen
from spikeview.format import label
from spikeview.meaning import MEAN, meaning
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, too_few, unknown, untold
from spikeview.run import Floats, Run

LEAST = 64
REVERSES = -0.3
NORM_REVERSES = -0.35
TREND = 17
FOLLOWS = 0.15
ONE_SIDED = 0.15
FAR = 5.0
PIECE = 16_384


def loss_smoothed(run: Run) -> Answer:
    """The loss is an average over rows, though it should be of one: shown by the norm, which is of one row.

    Of two quantities of single rows, what one of them gains by chance it loses on the next row, and the other
    with it. An averaged loss follows the norm up and does not turn back with it.
    """
    if not run.recorded("loss").any():
        return unknown("loss")
    said = meaning(run, "loss")
    if said is not None and said.over == MEAN:
        return untold("each loss is the mean of the steps since the row before: the log holds no single one", "loss")
    alone, normed = ((run.kind(name) == Kind.FINITE) & (run.values(name) > 0) for name in ("loss", "grad_norm"))
    if (count := int(np.count_nonzero(alone))) < LEAST:
        return too_few(count, "losses", LEAST)
    changes = _changes(run, "loss", alone)
    free = _lagged(changes, changes)
    if free <= REVERSES:
        return Answer(Outcome.PASSED, f"what the loss gains on a row it loses on the next (correlation {free:+.2f})")
    rows = alone & normed
    if (count := int(np.count_nonzero(rows))) < LEAST:
        return unknown("grad_norm") if not count else too_few(count, "rows with loss and norm", LEAST)
    loss, norm = _changes(run, "loss", rows), _changes(run, "grad_norm", rows)
    own, reference = _lagged(loss, loss), _lagged(norm, norm)
    follows, back, ahead = _correlation(loss, norm), _lagged(loss, norm), _lagged(norm, loss)
    text = f"row to row the loss keeps what it gains (correlation {own:+.2f})"
    if reference > NORM_REVERSES:
        return untold(f"{text}, but so does the {label('grad_norm')} ({reference:+.2f}): both may be as smooth as that")
    if own <= REVERSES or follows < max(FOLLOWS, 3 / np.sqrt(count)) or back - ahead < ONE_SIDED:
        return untold(f"{text}, and the {label('grad_norm')} does not tell why")
    return Answer(
        Outcome.FAILED,
        f"{text}, where the {label('grad_norm')} does not ({reference:+.2f}); it follows the norm ({follows:+.2f}) and "
        f"does not turn back with it ({back:+.2f}): it is averaged over rows",
    )


def _changes(run: Run, name: str, rows: Mask) -> Floats:
    """Changes of a logarithm from row to row, less their trend; cut at FAR times their usual size: no spike decides."""
    changes = np.diff(np.log(chosen(run.values(name), rows)))
    usual = float(np.median(np.abs(changes), overwrite_input=True)) / 0.6745
    free = np.empty(len(changes))
    for begin in range(0, len(changes), PIECE):  # a piece at a time stays in the processor's cache
        end = min(begin + PIECE, len(changes))
        around = np.clip(np.arange(begin - TREND // 2, end + TREND // 2), 0, len(changes) - 1)
        cut = np.clip(changes[around], -FAR * usual, FAR * usual)
        total = np.append(0.0, np.cumsum(cut))
        free[begin:end] = cut[TREND // 2 : -(TREND // 2)] - (total[TREND:] - total[:-TREND]) / TREND
    return free


def _lagged(later: Floats, earlier: Floats) -> float:
    """Correlation of a series with another one row before."""
    return _correlation(later[1:], earlier[:-1])


def _correlation(one: Floats, other: Floats) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt(np.dot(one, one) * np.dot(other, other)))
    return float(np.dot(one, other)) / size if size > 0 else 0.0
