"""What a part says of itself beside its rows, so that a reader need not look at all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.store.documents import from_json

_PENDING, _STEPS, _SEGMENT, _OPTIMIZER = b"pending", b"steps", b"segment", b"optimizer"


@dataclass(frozen=True)
class Said:
    """What is true of all rows of a part; None of what it does not say, as parts of earlier versions do.

    `pending` are the positions of pending rows, `steps` the smallest and the largest step. `segment` is the one of all
    rows, and tells that no step falls: the first row then has the smallest one, and the last row the largest.
    `optimizer` is the one name that all rows have.
    """

    pending: tuple[int, ...] = ()
    steps: tuple[int, int] | None = None
    segment: int | None = None
    optimizer: str | None = None

    @classmethod
    def of(cls, table: pa.Table, pending: NDArray[np.int64]) -> Said:
        """What is to be said of these rows."""
        columns = {name: table[name] for name in ("step", "segment", "optimizer") if name in table.column_names}
        whole = {name: column for name, column in columns.items() if len(column) and not column.null_count}
        steps = _bounds(columns["step"]) if "step" in columns else None
        segments = _bounds(whole["segment"]) if "step" in whole and "segment" in whole else None
        alike = segments is not None and segments[0] == segments[1] and not _falls(whole["step"])
        names = whole["optimizer"].unique().to_pylist() if "optimizer" in whole else []
        return cls(
            tuple(pending.tolist()),
            steps,
            segments[0] if segments is not None and alike else None,
            names[0] if len(names) == 1 else None,
        )

    def metadata(self) -> dict[bytes, bytes]:
        """As it stands in the part: JSON by name."""
        known = {_PENDING: self.pending or None, _STEPS: self.steps, _SEGMENT: self.segment, _OPTIMIZER: self.optimizer}
        return {name: json.dumps(value).encode() for name, value in known.items() if value is not None}

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes] | None, rows: int) -> Said:
        """What a part of so many rows says, as far as it makes sense: it may be damaged, or somebody else's."""
        said = {name: _value(metadata or {}, name) for name in (_PENDING, _STEPS, _SEGMENT, _OPTIMIZER)}
        pending, steps, segment, optimizer = said.values()
        places = pending if isinstance(pending, list) else []
        bounded = isinstance(steps, list) and len(steps) == 2 and all(map(_is_whole, steps)) and steps[0] <= steps[1]
        return cls(
            tuple(place for place in places if _is_whole(place) and 0 <= place < rows),
            (steps[0], steps[1]) if bounded else None,
            segment if bounded and _is_whole(segment) else None,
            optimizer if isinstance(optimizer, str) else None,
        )

    def faults(self, table: pa.Table) -> list[str]:
        """What is said that is not true of these rows, in a line each."""
        found = Said.of(table, np.array(self.pending, dtype=np.int64))
        claims = [(name, getattr(self, name), getattr(found, name)) for name in ("steps", "segment", "optimizer")]
        wrong = [(name, said) for name, said, true in claims if said not in (None, true)]
        return [f"says {said!r:.80} of its {name}, and it is not so" for name, said in wrong]

    def may_hold(self, step: int) -> bool:
        """Whether the part can hold a step; one that does not say can."""
        return self.steps is None or self.steps[0] <= step <= self.steps[1]


def _bounds(column: Any) -> tuple[int, int] | None:
    bounds = pc.min_max(column)
    found = bounds["min"].as_py(), bounds["max"].as_py()
    return None if found[0] is None else found


def _falls(column: Any) -> bool:
    steps = column.to_numpy()
    return bool((steps[1:] < steps[:-1]).any())


def _value(metadata: Mapping[bytes, bytes], name: bytes) -> Any:
    try:
        return from_json(metadata.get(name, b"null"))
    except ValueError:
        return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
