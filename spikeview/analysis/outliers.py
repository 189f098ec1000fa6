"""Which rows leave a signal's baseline, with the rows that are bad never in the baseline that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recorder.schema import Mask
from spikeview.analysis.baseline import NOTHING, Band, Followed, Settled, Track
from spikeview.analysis.excerpt import level
from spikeview.analysis.lazy import Positions, last_of
from spikeview.analysis.recovery import Episodes, Recovery
from spikeview.analysis.signals import Signal
from spikeview.cancelling import checkpoint
from spikeview.run import Floats

PASSES = 4
HABIT = 3
HABIT_ROWS = 400
BEYOND_HABIT = 1.5
ROUNDING = 1e-9
AT_ONCE = 1024

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
    far, opens, beyond = _beyond(track, signal, leeway)
    rows = _streaks(beyond[~light[beyond]], finite, signal.streak)
    recovery = Recovery(track, finite, signal.side)
    strayed = recovery.episodes(rows, before.strayed)
    usual = _usual(strayed, finite)
    habitual = rows[_habitual(track, rows, usual, signal.side, before.strays)]
    out = _mask(rows, len(finite))
    out[habitual] = False
    same = not len(habitual) and before.held == before.strayed
    held = strayed if same else recovery.episodes(np.flatnonzero(out), before.held)
    judged = Judged(track, out, _mask(habitual, len(finite)), _mask(far, len(finite)), healthy, held.bad)
    return _Pass(judged, finite, opens, usual, strayed, held, signal.side)


def _beyond(track: Track, signal: Signal, leeway: Floats) -> tuple[Positions, Positions, Positions]:
    """Rows that are far, those of which the next ones tell whether they are out, and those that are, light ones aside.

    Where a baseline is made from few rows it takes much to be sure of an episode. That it began with the rows that lead
    into it needs no more than to be sure of a row where there are many.
    """
    rows = _candidates(track, signal, leeway)
    distance = signal.side * track.deviation[rows] / leeway[rows]
    out, leading = distance > signal.threshold, distance * track.caution[rows] > signal.threshold
    far = rows[out]
    if signal.bound is not None:
        past = signal.side * track.values[rows] > signal.side * signal.bound
        out, leading = out & past, leading & past
    opens = rows[leading & ~out] if signal.streak == 1 else rows[out | leading]
    return far, opens, rows[out | leading & _leads(rows, out, leading)]


def _candidates(track: Track, signal: Signal, leeway: Floats) -> Positions:
    """The rows that can be past the threshold: the spread is worked out for no other."""
    away = signal.side * (track.values - track.center)
    least = signal.threshold * (1 - ROUNDING)
    rows = np.flatnonzero(away > least * leeway.min(initial=1.0) * signal.floor)
    return rows[away[rows] > least * leeway[rows] * track.least[rows]]


def _leads(rows: Positions, out: Mask, leading: Mask) -> Mask:
    """Those of the rows from which a row that is out is reached through nothing but leading ones."""
    if not out.any():
        return out
    at = np.arange(len(rows))
    goes_on = np.append((np.diff(rows) == 1) & (leading | out)[1:], False)
    next_out = np.minimum.accumulate(np.where(out, at, len(rows))[::-1])[::-1]
    next_end = np.minimum.accumulate(np.where(goes_on, len(rows), at)[::-1])[::-1]
    reached: Mask = next_out <= next_end
    return reached


def _streaks(out: Positions, judged: Mask, least: int) -> Positions:
    """Only those that stand in a run of at least `least`, counted over the judged rows."""
    if least <= 1 or not len(out):
        return out
    places = np.cumsum(judged)[out]
    run = np.cumsum(np.diff(places, prepend=places[0]) > 1)
    return out[np.bincount(run)[run] >= least]


def _usual(strayed: Episodes, finite: Mask) -> Mask:
    """[rows]: those by which a habit is told: of an episode the one it begins with."""
    if not len(strayed.onsets):
        return finite
    usual: Mask = finite & ~strayed.bad
    usual[strayed.onsets[strayed.onsets >= 0]] = True
    return usual


def _habitual(track: Track, beyond: Positions, usual: Mask, side: int, before: Floats) -> Mask:
    """[beyond]: rows beyond the band that go no farther than the signal does by habit.

    A heavy tail, a mixture of data sets or the start of every epoch takes a signal out of any band made of medians, and
    again and again. So a row is no news where HABIT of the HABIT_ROWS `usual` ones before it went as far, to a factor
    of BEYOND_HABIT. An episode counts once, by the row it begins with: that it lasts makes it no habit.
    """
    if not len(beyond):
        return np.zeros(0, dtype=np.bool_)
    strays = side * (track.values - track.center)
    places = np.flatnonzero(usual & ~np.isnan(strays))
    known = np.concatenate([before, strays[places]]) if len(before) else strays[places]
    largest = _third_largest(known, len(before) + np.searchsorted(places, beyond))
    return strays[beyond] <= BEYOND_HABIT * largest  # NaN where there are too few


def _third_largest(values: Floats, ends: Positions) -> Floats:
    """[ends]: the HABIT-th largest of the HABIT_ROWS values before each end, NaN where there are fewer than HABIT."""
    found = np.full(len(ends), np.nan)
    for at in np.flatnonzero((ends >= HABIT) & (ends < HABIT_ROWS)).tolist():
        found[at] = np.partition(values[: ends[at]], -HABIT)[-HABIT]
    late = np.flatnonzero(ends >= HABIT_ROWS)
    for first in range(0, len(late), AT_ONCE):
        some = late[first : first + AT_ONCE]
        windows = sliding_window_view(values, HABIT_ROWS)[ends[some] - HABIT_ROWS]
        found[some] = np.partition(windows, -HABIT, axis=1)[:, -HABIT]
    return found


def _mask(rows: Positions, length: int) -> Mask:
    found = np.zeros(length, dtype=np.bool_)
    found[rows] = True
    return found
