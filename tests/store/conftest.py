"""Rows as a recorder gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def make_row() -> MakeRow:
    """A function giving one plausible row of `steps`, with columns replaced at will."""

    def row(number: int, **columns: Any) -> dict[str, Any]:
        return {
            "row": number,
            "segment": 0,
            "step": number,
            "micro_step": 0,
            "optimizer": "main",
            "time_ns": 1_700_000_000_000_000_000 + number,
            "batch_id": f"batch {number}",
            "loss": 2.0 / (number + 1),
            "executed": True,
            "scheduled": None,
            **columns,
        }

    return row
