"""What a part says of itself beside its rows, so that a reader need not look at all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.store.documents import from_json

_NAMES = ("pending", "steps", "segment", "texts")
LONGEST = 200


@dataclass(frozen=True)
class Said:
    """What is true of all rows of a part; None of what it does not say, as parts of earlier versions do.

    `pending` are the positions of pending rows, `steps` the smallest and the largest step. `segment` is the one of all
    rows, and tells that no step falls: the first row then has the smallest one, and the last row the largest.
    `texts` are the columns that have one text in all rows.
    """

    pending: tuple[int, ...] = ()
    steps: tuple[int, int] | None = None
    segment: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table, pending: NDArray[np.int64]) -> Said:
        """What is to be said of these rows."""
        columns = {name: table[name] for name in ("step", "segment") if name in table.column_names}
        whole = {name: column for name, column in columns.items() if len(column) and not column.null_count}
        steps = _bounds(columns["step"]) if "step" in columns else None
        segments = _bounds(whole["segment"]) if len(whole) == 2 else None
        alike = segments is not None and segments[0] == segments[1] and not _falls(whole["step"])
        texts = {field.name: _one_text(table[field.name]) for field in table.schema if pa.types.is_string(field.type)}
        return cls(
            tuple(pending.tolist()),
            steps,
            segments[0] if segments is not None and alike else None,
            {name: text for name, text in texts.items() if text is not None},
        )

    def metadata(self) -> dict[bytes, bytes]:
        """As it stands in the part: JSON by name."""
        known = {name: getattr(self, name) for name in _NAMES}
        return {
            name.encode(): json.dumps(value).encode() for name, value in known.items() if value not in (None, (), {})
        }

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes] | None, rows: int) -> Said:
        """What a part of so many rows says, as far as it makes sense: it may be damaged, or somebody else's."""
        pending, steps, segment, texts = (_value(metadata or {}, name.encode()) for name in _NAMES)
        places = pending if isinstance(pending, list) else []
        bounded = isinstance(steps, list) and len(steps) == 2 and all(map(_is_whole, steps)) and steps[0] <= steps[1]
        named = texts.items() if isinstance(texts, dict) else ()
        return cls(
            tuple(sorted({place for place in places if _is_whole(place) and 0 <= place < rows})),
            (steps[0], steps[1]) if bounded else None,
            segment if bounded and _is_whole(segment) else None,
            {name: text for name, text in named if isinstance(text, str)},
        )

    def faults(self, table: pa.Table) -> list[str]:
        """What is said that is not true of these rows, in a line each."""
        found = Said.of(table, np.array(self.pending, dtype=np.int64))
        claims: list[tuple[str, object, object]] = [
            ("steps", self.steps, found.steps),
            ("segment", self.segment, found.segment),
        ]
        claims += [(name, text, found.texts.get(name)) for name, text in self.texts.items()]
        wrong = [(name, said) for name, said, true in claims if said not in (None, true)]
        return [f"says {said!r:.80} of its {name}, and it is not so" for name, said in wrong]

    def may_hold(self, step: int) -> bool:
        """Whether the part can hold a step; one that does not say can."""
        return self.steps is None or self.steps[0] <= step <= self.steps[1]


def _bounds(column: Any) -> tuple[int, int] | None:
    bounds = pc.min_max(column)
    found = bounds["min"].as_py(), bounds["max"].as_py()
    return None if found[0] is None else found


def _one_text(column: Any) -> str | None:
    """The text of all rows, None where they are not alike; a long one is not worth the room."""
    if not len(column) or column.null_count:
        return None
    first: str = column[0].as_py()
    alike = len(first) <= LONGEST and pc.all(pc.equal(column, pa.scalar(first, column.type))).as_py()
    return first if alike else None


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
