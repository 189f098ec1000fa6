"""Trend and spread of a series: at every place, or where they are asked for, they are what their definition says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from spikeview.analysis.followed import follow
from spikeview.analysis.trailing import LONG, PIECE, SPREADS, STRIDE, TREND, least_spread, spread, trend, trend_without
from spikeview.run import Floats

LENGTHS = (0, 1, TREND - 1, TREND, TREND + 1, LONG - 1, LONG, LONG + 1, 1500)


def series(rows: int) -> Iterator[Floats]:
    """Of few values, of many, and all the same."""
    noise = np.random.default_rng(rows)
    yield noise.standard_normal(rows)
    yield np.round(noise.standard_normal(rows), 1)
    yield np.zeros(rows)


def share_below(values: Floats, width: int, share: float) -> float:
    last = np.sort(values[-width:])
    if len(last) == width:
        return float(last[int(share * width)])
    at = share * (len(last) - 1)
    return float(last[int(np.floor(at))] + last[int(np.ceil(at))]) / 2


def widest(distances: Floats, place: int) -> float:
    before = distances[:place]
    return max(share_below(before, width, share) / normal for width, share, normal in SPREADS) if place else np.nan


@pytest.mark.parametrize("rows", LENGTHS)
def test_the_trend_is_the_median_of_the_last_values(rows: int) -> None:
    for values in series(rows):
        expected = [np.nan, *(share_below(values[:place], TREND, 0.5) for place in range(1, rows + 1))]
        assert np.array_equal(trend(values), expected, equal_nan=True)


@pytest.mark.parametrize("rows", LENGTHS)
def test_the_spread_is_the_same_for_a_few_places_as_for_all(rows: int) -> None:
    for values in series(rows):
        distances = np.abs(values)
        expected = np.array([widest(distances, place) for place in range(rows + 1)])
        assert np.array_equal(spread(distances, np.arange(rows + 1)), expected, equal_nan=True)
        some = np.random.default_rng(1).integers(0, rows + 1, 20)
        assert np.array_equal(spread(distances, some), expected[some], equal_nan=True)
        bounds = least_spread(distances)[np.arange(rows + 1) // STRIDE]
        assert not (expected < bounds).any()


def test_a_long_series_is_cut_into_pieces_that_nobody_sees() -> None:
    values = np.random.default_rng(2).standard_normal(3 * PIECE + 5)
    edges = np.array([PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 4])
    assert trend(values)[edges].tolist() == [share_below(values[:place], TREND, 0.5) for place in edges]
    distances, all_of_them = np.abs(values), np.arange(len(values) + 1)
    assert spread(distances, edges).tolist() == [widest(distances, place) for place in edges]
    assert np.array_equal(spread(distances, all_of_them)[edges], spread(distances, edges))


@pytest.mark.parametrize("gone", [[], [0], [3, 4, 20], [500, 501, 502, 510, 900, 1499], [*range(200, 1300)]])
def test_the_trend_without_some_values_is_the_trend_of_the_others(gone: list[int]) -> None:
    for values in series(1500):
        rest = np.delete(values, gone)
        found = trend_without(trend(values), rest, np.array(gone, dtype=np.int64))
        assert np.array_equal(found, trend(rest), equal_nan=True)


def test_a_track_tells_the_same_of_a_row_by_itself_and_among_others() -> None:
    values = np.random.default_rng(3).standard_normal(2000)
    healthy = np.random.default_rng(4).random(2000) < 0.9
    alone, together = follow(values, healthy, 0.1), follow(values, healthy, 0.1).deviation[:]
    for row in (0, 5, 700, 701, 1999):
        assert np.array_equal(alone.deviation[row], together[row], equal_nan=True)
    assert np.array_equal(alone.deviation[3:9], together[3:9], equal_nan=True)
