"""What a cell may hold, and how what a caller gives becomes that."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

Scalar = bool | int | float | str | None

_LIMITS = {"int32": 2**31, "int64": 2**63}


def coerce(name: str, dtype: str, value: Any) -> int | float:
    """A number for a column of the schema.

    Raises TypeError for another type and ValueError for a number that does not fit; both name the column.
    """
    if dtype == "bool" and isinstance(value, (bool, np.bool_)):
        return bool(value)
    if dtype == "double" and isinstance(value, (int, float, np.number, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name}: {value} is too large for a double") from None
    if dtype in _LIMITS and isinstance(value, (int, np.integer, np.bool_)):
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
        return _within(name, dtype, number)
    raise TypeError(f"{name}: expected {dtype} or None, got {type(value).__name__} {value!r:.80}")


def clean_text(name: str, value: Any) -> str:
    """A text that UTF-8 can hold; what it cannot (lone surrogates, as in odd file names) is written as an escape."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text or None, got {type(value).__name__} {value!r:.80}")
    if value.isascii():
        return str(value)
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def user_scalar(name: str, value: Any) -> Scalar:
    """A user's value as a plain bool, int, float, text or None. Raises as `coerce` does."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return _within(name, "int64", int(value))
    if isinstance(value, str):
        return clean_text(name, value)
    raise TypeError(f"{name}: a user field is a number, a bool or a text, not {type(value).__name__} {value!r:.80}")


def _within(name: str, dtype: str, number: int) -> int:
    if not -_LIMITS[dtype] <= number < _LIMITS[dtype]:
        raise ValueError(f"{name}: {number} does not fit {dtype}")
    return number
