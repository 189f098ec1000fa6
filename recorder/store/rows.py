"""Rows: the unsealed rows of a table in memory, the same whether they are being written or read back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from recorder.store.layout import PENDING, Layout
from recorder.store.values import Scalar, clean_text, coerce, user_scalar

MAX_USER_FIELDS = 1000


class Record(NamedTuple):
    """One row as it is written; `defines` are its new texts as (column, code, text)."""

    position: int
    block: bytes
    defines: list[tuple[int, int, str]]
    user: dict[str, Scalar]


class Rows:
    """Blocks one after the other, the codes of each text column, and the user fields by name.

    A record at the position of an earlier one replaces it; that is all there is to amending a row.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.blocks = bytearray()
        self.texts: list[list[str | None]] = [[None] for _ in layout.texts]
        self._codes: list[dict[str | None, int]] = [{None: 0} for _ in layout.texts]
        self.user: dict[str, list[Scalar]] = {}

    def __len__(self) -> int:
        return len(self.blocks) // self.layout.size

    def record(
        self, position: int, row: Mapping[str, object], user: Mapping[str, object] | None, pending: bool
    ) -> Record:
        """The record of a row; nothing is kept yet.

        Raises KeyError for a column the table does not have, TypeError or ValueError for a value its column
        cannot hold.
        """
        layout = self.layout
        merged: dict[str, Any] = {**layout.blank, **row}
        if len(merged) != len(layout.blank):
            unknown = sorted(str(name) for name in row if name not in layout.blank)
            raise KeyError(f"no column named {', '.join(unknown)}")
        values = list(merged.values())
        count = len(layout.numbers)
        numbers = values[:count]
        defines: list[tuple[int, int, str]] = []
        texts = values[count:]
        try:
            codes = [known[text] for known, text in zip(self._codes, texts, strict=True)]
        except (KeyError, TypeError):  # a text that is new, or no text
            codes = [self._code(column, text, defines) for column, text in enumerate(texts)]
        recorded = bytes([value is not None for value in numbers])
        filled = [0 if value is None else value for value in numbers]
        head = (position, PENDING if pending else 0, len(defines), recorded)
        try:
            block = layout.struct.pack(*head, *filled, *codes)
        except (struct.error, TypeError, OverflowError):
            exact = [
                0 if value is None else coerce(name, dtype, value)
                for (name, dtype), value in zip(layout.numbers, numbers, strict=True)
            ]
            block = layout.struct.pack(*head, *exact, *codes)
        return Record(position, block, defines, self._user_fields(user) if user else {})

    def put(self, record: Record) -> None:
        """Keep a record. Raises ValueError, counting nothing, where it cannot follow those before it."""
        size = self.layout.size
        held = len(self)
        position = record.position
        if position > held:
            raise ValueError(f"record {position} follows {held} rows")
        if len(self.user) + len(record.user) > MAX_USER_FIELDS:
            self._check_user_names(record.user)
        for column, code, text in record.defines:
            texts = self.texts[column]
            if not 0 < code <= len(texts):
                raise ValueError(f"text {code} follows {len(texts)} texts")
            texts[code : code + 1] = [text]
            self._codes[column][text] = code
        if position < held:
            for values in self.user.values():
                if position < len(values):
                    values[position] = None
        for name, value in record.user.items():
            values = self.user.setdefault(name, [])
            values.extend([None] * (position + 1 - len(values)))
            values[position] = value
        # Last, so that a Ctrl-C on the way leaves the row uncounted, and its record is replaced by the next.
        self.blocks[position * size : (position + 1) * size] = record.block

    def _code(self, column: int, text: object, defines: list[tuple[int, int, str]]) -> int:
        if text is None:
            return 0
        clean = clean_text(self.layout.texts[column], text)
        code = self._codes[column].get(clean)
        if code is None:
            code = len(self.texts[column])
            defines.append((column, code, clean))
        return code

    def _user_fields(self, user: Mapping[str, object]) -> dict[str, Scalar]:
        fields = {clean_text("user field", name): user_scalar(name, value) for name, value in user.items()}
        self._check_user_names(fields)
        return fields

    def _check_user_names(self, fields: Mapping[str, Scalar]) -> None:
        if len(self.user.keys() | fields.keys()) > MAX_USER_FIELDS:
            raise ValueError(f"more than {MAX_USER_FIELDS} different user fields; record a value under a fixed name")
