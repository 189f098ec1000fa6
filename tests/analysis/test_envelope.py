"""Whatever the zoom, every column of pixels shows the true extremes of its rows and marks each bad one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spikeview.analysis.envelope import SIZES, edges, envelope
from spikeview.analysis.extremes import DRAWN, NAN, NEGATIVE, POS_INF, ZERO, row_flags
from spikeview.analysis.pyramid import BLOCK, build
from spikeview.cells import Kind


def series(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values around zero with every kind of cell among them."""
    random = np.random.default_rng(seed)
    values = random.normal(size=rows) * 10.0 ** random.integers(-3, 4, size=rows)
    kinds = random.choice(
        [Kind.FINITE, Kind.NAN, Kind.POS_INF, Kind.NEG_INF, Kind.NOT_APPLICABLE, Kind.NOT_RECORDED],
        size=rows,
        p=[0.9, 0.04, 0.02, 0.02, 0.01, 0.01],
    ).astype(np.uint8)
    for kind, value in ((Kind.NAN, np.nan), (Kind.POS_INF, np.inf), (Kind.NEG_INF, -np.inf)):
        values[kinds == kind] = value
    values[kinds >= Kind.NOT_APPLICABLE] = np.nan
    return values, kinds


@given(
    rows=st.integers(1, 9000),
    seed=st.integers(0, 2**31),
    width=st.integers(1, 120),
    start=st.floats(-0.2, 1.0),
    extent=st.floats(1e-4, 1.4),
    positive=st.booleans(),
)
@example(rows=8999, seed=1, width=3, start=0.0, extent=1.0, positive=False)
@example(rows=8193, seed=2, width=7, start=0.01, extent=1.0, positive=True)
@example(rows=5, seed=3, width=100, start=-0.1, extent=1.2, positive=False)
@example(rows=70_001, seed=4, width=30, start=0.013, extent=0.95, positive=True)
@example(rows=70_001, seed=5, width=33, start=-0.1, extent=1.2, positive=False)
@settings(max_examples=250, deadline=None)
def test_columns_equal_brute_force(
    rows: int, seed: int, width: int, start: float, extent: float, positive: bool
) -> None:
    values, kinds = series(rows, seed)
    first, last = start * rows, (start + extent) * rows
    columns = envelope(build(values, kinds, positive), first, last, width)

    each = row_flags(values, kinds, positive)
    cuts = edges(first, last, width, rows).at
    for column in range(width):
        held = slice(cuts[column], cuts[column + 1])
        drawn = values[held][each[held] == DRAWN]
        assert columns.low[column] == (drawn.min() if len(drawn) else np.inf)
        assert columns.high[column] == (drawn.max() if len(drawn) else -np.inf)
        assert columns.flags[column] == np.bitwise_or.reduce(each[held], initial=0)


@given(rows=st.integers(1, 4000), width=st.integers(1, 200), first=st.floats(-50, 4000), extent=st.floats(0.1, 5000))
def test_edges_give_every_visible_row_to_one_column(rows: int, width: int, first: float, extent: float) -> None:
    cuts = edges(first, first + extent, width, rows).at
    assert (np.diff(cuts) >= 0).all()
    visible = [row for row in range(rows) if first <= row < first + extent]
    moved = next((size for size in SIZES if len(visible) + 1 >= 2 * size * width), 1)
    assert cuts[-1] - cuts[0] == pytest.approx(len(visible), abs=moved)


@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, BLOCK + 1, 100 * BLOCK + 37])
def test_the_last_row_is_never_lost(rows: int) -> None:
    values = np.zeros(rows)
    values[-1] = 5.0
    columns = envelope(build(values, np.zeros(rows, dtype=np.uint8)), 0, rows, 10)
    assert columns.high[columns.drawn][-1] == 5.0


def test_a_spike_beside_nan_and_inf_stays_visible() -> None:
    values, kinds = np.ones(1_000_000), np.zeros(1_000_000, dtype=np.uint8)
    values[[499_999, 500_000, 500_001]] = np.nan, 42.0, np.inf
    kinds[[499_999, 500_001]] = Kind.NAN, Kind.POS_INF
    columns = envelope(build(values, kinds), 0, 1_000_000, 1000)
    assert columns.high.max() == 42.0
    assert columns.flags.tolist().count(DRAWN) == 999
    assert np.bitwise_or.reduce(columns.flags[499:501]) == DRAWN | NAN | POS_INF


def test_zero_and_below_are_flagged_on_a_log_axis_and_hide_nothing() -> None:
    values = np.tile([0.0, 1e-3, -2.0, 10.0], 1000)
    columns = envelope(build(values, np.zeros(4000, dtype=np.uint8), positive=True), 0, 4000, 8)
    assert (columns.low == 1e-3).all() and (columns.high == 10.0).all()
    assert (columns.flags == DRAWN | NEGATIVE | ZERO).all()


@pytest.mark.parametrize(("first", "last", "width"), [(0, 0, 10), (5, 1, 10), (0, 10, 0)])
def test_a_view_without_extent_is_refused(first: float, last: float, width: int) -> None:
    pyramid = build(np.ones(10), np.zeros(10, dtype=np.uint8))
    with pytest.raises(ValueError, match="positive width and extent"):
        envelope(pyramid, first, last, width)


@given(rows=st.integers(1, 3000), before=st.integers(0, 3000), seed=st.integers(0, 99), amended=st.integers(0, 80))
@settings(max_examples=60, deadline=None)
def test_a_series_that_grew_and_was_amended_is_as_one_built_anew(
    rows: int, before: int, seed: int, amended: int
) -> None:
    values, kinds = series(rows, seed)
    old, old_kinds = values[:before].copy(), kinds[:before].copy()
    old[len(old) - amended :], old_kinds[len(old) - amended :] = np.nan, Kind.NOT_RECORDED
    grown, anew = build(values, kinds, known=build(old, old_kinds)), build(values, kinds)
    for ours, theirs in ((grown.low, anew.low), (grown.high, anew.high), (grown.flags, anew.flags)):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("rows", "block"), [(100_001, SIZES[1]), (1_000_001, SIZES[0])])
def test_wide_columns_end_where_blocks_do_and_lose_no_row(rows: int, block: int) -> None:
    cuts = edges(0.3, rows - 0.3, 100, rows).at
    assert (cuts[:-1] % block == 0).all()
    assert cuts[-1] == rows
    exact = 0.3 + (rows - 0.6) / 100 * np.arange(101)
    assert np.abs(cuts - exact).max() <= block / 2 + 1 <= (rows - 0.6) / 400 + 1
