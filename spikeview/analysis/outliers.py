"""Which rows leave a signal's baseline, with the rows that are bad never in the baseline that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.excerpt import level
from spikeview.analysis.followed import Followed
from spikeview.analysis.habit import HABIT_ROWS, habitual_among, usual_rows
from spikeview.analysis.lazy import Positions, last_of
from spikeview.analysis.recovery import Episodes, Recovery
from spikeview.analysis.signals import Signal
from spikeview.analysis.threshold import beyond, in_streaks
from spikeview.analysis.track import NOTHING, Band, Settled, Track
from spikeview.cancelling import checkpoint
from spikeview.run import Floats

PASSES = 4

Passes: TypeAlias = tuple[Settled, ...]
AFRESH: Passes = (NOTHING,) * (PASSES + 1)


@dataclass(frozen=True)
class Judged:
    """Masks over the rows by the track they were judged by.

    Which are `out`, which only by habit, and which `far`: past the threshold, whatever else is asked of a row that is
    out. `healthy` rows fed the baseline; `held` are those from an onset until the signal is back. `settled` has the
    rows, of those that were asked for, from which on all can be judged without the rows before, and what every pass
    needs to know of these.
    """

    track: Track
    out: Mask
    habitual: Mask
    far: Mask
    healthy: Mask
    held: Mask
    settled: Mapping[int, Passes] = field(default_factory=dict)


def outliers(
    values: Floats,
    feeds: Mask,
    signal: Signal,
    light: Mask,
    leeway: Floats,
    excerpt: bool = False,
    before: Passes = AFRESH,
    settling: Sequence[int] = (),
) -> Judged:
    """Which rows leave a signal's baseline; in an `excerpt`, the level that the signal keeps in it.

    `values` are [rows] on the signal's scale; `feeds` says which rows may feed the baseline at all, `light` where the
    signal has no say; `leeway` is the factor in its threshold. A pass flags rows, takes the episode that each of them
    begins out of the baseline, and judges again, until nothing changes or after PASSES. `before` is what each pass
    knows of the rows before these, `settling` rows of which it is asked whether they are settled.
    """
    finite = np.isfinite(values)
    healthy = feeds & finite
    if excerpt and (track := level(values, healthy, signal.floor, signal.side)) is not None:
        return _judge(track, finite, healthy, signal, light, leeway, NOTHING).judged
    settled: list[list[Settled | None]] = []
    followed = Followed.of(values, healthy, signal.trend, before=before[0])
    for number in range(PASSES + 1):
        checkpoint()
        track = followed.track(values, signal.floor)
        done = _judge(track, finite, followed.healthy, signal, light, leeway, followed.before)
        settled.append([done.settled(followed, row) for row in settling])
        held = done.judged.held
        later = before[number + 1 :]
        if not held[followed.healthy].any() and all(each is followed.before for each in later):
            break
        if later:
            followed = Followed.of(values, followed.healthy & ~held, signal.trend, followed, later[0])
    return replace(done.judged, settled=_settled(settling, settled))


def _settled(rows: Sequence[int], passes: Sequence[Sequence[Settled | None]]) -> Mapping[int, Passes]:
    """What all passes know before each row, without rows that one of them leaves open.

    Where fewer were made, each further one would find what the last did.
    """
    found = {}
    for row, *known in zip(rows, *passes, strict=True):
        whole = [each for each in known if each is not None]
        if len(whole) == len(known):
            found[row] = (*whole, *[whole[-1]] * (PASSES + 1 - len(whole)))
    return found


@dataclass(frozen=True)
class _Pass:
    """What a pass found, and what tells whether it is settled before a row.

    `open` are the rows of which the next ones tell whether they are out; `usual` those by which a habit is told.
    """

    judged: Judged
    finite: Mask
    open: Positions
    usual: Mask
    strayed: Episodes
    held: Episodes
    side: int

    def settled(self, followed: Followed, row: int) -> Settled | None:
        """What there is to know before a row; None where it takes later rows to judge those before it."""
        track, last = self.judged.track, last_of(self.finite, row, 1)

        def distance(band: Band) -> float:
            center, spread = band
            return float(self.side * (track.values[last[0]] - center) / spread) if len(last) else np.inf

        strayed, held = (each.left(row, distance) for each in (self.strayed, self.held))
        if np.isin(last, self.open).any() or not (strayed[0] and held[0]):
            return None
        places = last_of(self.usual, row, HABIT_ROWS)
        strays = self.side * (track.values[places] - track.center[places])
        strays = np.concatenate([followed.before.strays, strays[~np.isnan(strays)]])
        return Settled(*followed.last(row), strays[-HABIT_ROWS:], strayed[1], held[1])


def _judge(
    track: Track, finite: Mask, healthy: Mask, signal: Signal, light: Mask, leeway: Floats, before: Settled
) -> _Pass:
    far, opens, past = beyond(track, signal, leeway)
    rows = in_streaks(past[~light[past]], finite, signal.streak)
    recovery = Recovery(track, finite, signal.side)
    strayed = recovery.episodes(rows, before.strayed)
    usual = usual_rows(strayed, finite)
    habitual = rows[habitual_among(track, rows, usual, signal.side, before.strays)]
    out = _mask(rows, len(finite))
    out[habitual] = False
    same = not len(habitual) and before.held == before.strayed
    held = strayed if same else recovery.episodes(np.flatnonzero(out), before.held)
    judged = Judged(track, out, _mask(habitual, len(finite)), _mask(far, len(finite)), healthy, held.bad)
    return _Pass(judged, finite, opens, usual, strayed, held, signal.side)


def _mask(rows: Positions, length: int) -> Mask:
    found = np.zeros(length, dtype=np.bool_)
    found[rows] = True
    return found
