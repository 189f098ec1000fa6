"""The text of a list of samples: short, readable, and exactly what it was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorder.sample_ids import SampleIds, as_text, batch_text, from_text, place_of, summary

NUMBERS = st.integers(0, 2**63 - 1) | st.integers(0, 12)
RUNS = st.builds(
    lambda first, count, apart: list(range(first, first + count * apart, apart)),
    st.integers(0, 2**62),
    st.integers(0, 9),
    st.integers(1, 5),
)
NAMES = st.text(max_size=8)


@given(
    st.lists(RUNS | st.lists(NUMBERS, max_size=99), max_size=6).map(lambda parts: [n for part in parts for n in part])
)
def test_numbers_come_back_in_their_order(ids: list[int]) -> None:
    assert from_text(as_text(ids)) == ids


@given(st.lists(NAMES | st.integers() | st.tuples(NAMES, st.integers()), max_size=20))
def test_names_and_tuples_come_back_too(ids: list[Any]) -> None:
    assert from_text(as_text(ids)) == ids


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (range(64), "[0-63]"),
        (range(0, 256, 4), "[0-252/4]"),
        ([8217, 13, 402, 403, 404, 405], "[8217,13,402-405]"),
        ([5, 4, 3], "[5,4,3]"),
        ([7, 7], "[7,7]"),
        ([], "[]"),
        (["a.jpg", "b, c"], '["a.jpg","b, c"]'),
        (np.array([3, 9]), "[3,9]"),
    ],
)
def test_what_is_written(ids: Any, text: str) -> None:
    assert as_text(ids) == text


def test_of_many_shuffled_samples_the_text_says_first_what_they_come_to() -> None:
    ids = np.random.default_rng(0).permutation(1_000_000)[:512].tolist()
    text = as_text(ids)
    assert text.startswith(f"[512 of {min(ids)}-{max(ids)}: ")
    assert len(text) < 0.6 * len(str(ids))
    assert from_text(text) == ids
    assert summary(text) == f"512 samples from {min(ids)} to {max(ids)}"
    assert place_of(text, ids[100]) == 100
    assert summary(as_text(ids[:64])) == f"64 samples from {min(ids[:64])} to {max(ids[:64])}", "too long to be read"
    assert summary(as_text(ids[:4])) is None and summary(str(["a name"] * 20)) is None
    assert place_of(text, next(n for n in range(10**6) if n not in ids)) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "2-40", "b-17", "17", "[", "[0-]", "[a]", "[5-3]", "[5-3/0]", "[0-5/0]", "[٣]", "[" * 9999 + "]" * 9999),
        *("[1-99999999999]", "[0-9999999999999999999]", "[9 of 0-3: AAAA]", "[2 of 0-3: !!]", "[1 of 5-9: ====]"),
        *("[0 of 5-9: ]", "[1 of 5-5: BQ==]", "[1 of 5-9223372036854775807: /////////38=]"),
        *("[1 of 9999999999999999999-5: AA==]", "[1 of 0-9999999999999999999: AAAAAAAAAAA=]"),
    ],
)
def test_what_the_user_called_a_batch_is_no_list_of_samples(text: str) -> None:
    assert from_text(text) is None
    assert place_of(text, 3) is None
    assert summary(text) is None


def test_what_a_loop_may_give_as_a_batch_id() -> None:
    assert batch_text(SampleIds("[0-3]")) == "[0-3]"
    assert batch_text(np.arange(4)) == batch_text([0, 1, 2, 3]) == "[0-3]"
    assert batch_text((2, 7)) == "(2, 7)"
    assert batch_text(np.int64(5)) == "5"


def test_what_has_no_json_form_is_still_named() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "odd"

    assert as_text([Odd(), 1]) == '["odd",1]'
    assert as_text([{Odd(): 1}]) == '["{odd: 1}"]'

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    assert as_text([Silent(), 1]) == '["<Silent>",1]'
    assert as_text([10**5000, 1]) == '["<int>", "1"]'
