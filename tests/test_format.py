from __future__ import annotations

import pytest

from spikeview.format import label, mads, number, plain, printable, scalar, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.1823, "3.182"),
        (0.045125, "0.04512"),
        (0.03, "0.03000"),
        (378500000.0, "3.785e+08"),
        (2.57e-10, "2.570e-10"),
        (12345.6, "12346"),
        (-0.258, "-0.2580"),
        (0.0, "0"),
        (1.0, "1"),
        (65536.0, "65536"),
        (1e6, "1000000"),
        (1e7, "1.000e+07"),
        (999999.6, "1.000e+06"),
        (float("nan"), "NaN"),
        (float("inf"), "Inf"),
        (float("-inf"), "-Inf"),
    ],
)
def test_numbers_keep_four_significant_digits_and_whole_ones_are_plain(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-7.06, "-7.1"), (-0.04, "+0.0"), (9.97, "+10"), (14.2, "+14"), (9.1e10, "+9.1e+10"), (float("inf"), "Inf")],
)
def test_distances_are_signed(value: float, text: str) -> None:
    assert mads(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.2139, "2.21"), (0.00452, "0.00452"), (3.892e9, "3.89e+09"), (1234.5, "1234"), (65536.0, "65536")],
)
def test_fewer_digits_are_for_columns_of_numbers(value: float, text: str) -> None:
    assert number(value, digits=3) == text


def test_nonfinite_numbers_are_words_in_json_at_any_depth() -> None:
    assert plain({"a": [float("nan"), {"b": float("-inf")}], 1: 2.5}) == {"a": ["nan", {"b": "-inf"}], "1": 2.5}


def test_a_loss_scale_is_written_out_and_a_cosine_has_its_sign() -> None:
    assert scalar("loss_scale", 2.0**24) == "16777216"
    assert scalar("update_cosine", 0.965) == "+0.9650"


def test_columns_have_short_names() -> None:
    columns = ("loss", "grad_norm", "update_ratio", "update_cosine", "clip_coef", "loss_scale", "user_domain")
    names = ["loss", "pre-clip norm", "update ratio", "cosine", "clip coefficient", "loss scale", "user domain"]
    assert [label(column) for column in columns] == names


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain, ± … ≤ 猫 🐈 و", "plain, ± … ≤ 猫 🐈 و"),
        ("\x1b[31m\x07\x00\n\x7f\x9b", r"\x1b[31m\x07\x00\x0a\x7f\x9b"),
        ("\u202eabc\u2066\u2028\ud800", r"\u202eabc\u2066\u2028\ud800"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ],
)
def test_what_acts_instead_of_being_seen_is_written_as_its_code(text: str, seen: str) -> None:
    assert printable(text) == seen


def test_a_long_text_is_its_beginning_and_its_length() -> None:
    assert shown("x" * 200) == "x" * 200
    assert shown("x" * 100_000) == "x" * 100 + "… (100,000 characters)"
    assert shown("x" * 61, 60) == "x" * 30 + "… (61 characters)"
    assert scalar("batch_id", "\x07" * 201) == r"\x07" * 100 + "… (201 characters)"
    assert label("user_\x1b") == r"user \x1b"
