"""Rows: the rows of a journal in memory, to be sealed from there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recorder.store.layout import Layout
from recorder.store.texts import Texts
from recorder.store.values import Scalar

MAX_USER_FIELDS = 1000
AT_ONCE = 4096

# New texts, as (column, code, text).
Defines = Sequence[tuple[int, int, str]]
# A row as it is written: its block, the texts it defines, and its user fields.
Record = tuple[bytes, Defines, Mapping[str, Scalar]]


class Rows:
    """Blocks one after the other, the texts of each text column by code, and the user fields by name.

    A record at the position of an earlier one replaces it; that is all there is to amending a row.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.texts = [Texts() for _ in layout.texts]
        self.user: dict[str, list[Scalar]] = {}
        # In several, for a large one that grows is copied as a whole now and then, and the training waits for it.
        self._blocks = [bytearray()]

    def __len__(self) -> int:
        return (len(self._blocks) - 1) * AT_ONCE + len(self._blocks[-1]) // self.layout.size

    @property
    def blocks(self) -> NDArray[np.uint8]:
        """The blocks of all rows, one after the other."""
        return np.concatenate([np.frombuffer(blocks, np.uint8) for blocks in self._blocks])

    def put(self, position: int, record: Record) -> None:
        """Keep a record."""
        block, defines, user = record
        for column, code, text in defines:
            self.texts[column].put(code, text.encode())
        if user or self.user:
            self._put_user(position, user)
        piece, place = divmod(position, AT_ONCE)
        if piece == len(self._blocks):
            self._blocks.append(bytearray())
        start = place * self.layout.size
        # Last, so that a Ctrl-C on the way leaves the row uncounted, and its record is replaced by the next.
        self._blocks[piece][start : start + self.layout.size] = block

    def release(self, pause: Callable[[], None]) -> None:
        """Let go of the values, a few at a time: to free all at once would stop the training for milliseconds."""
        for values in self.user.values():
            while values:
                del values[-AT_ONCE:]
                pause()

    def _put_user(self, position: int, user: Mapping[str, Scalar]) -> None:
        for values in self.user.values():
            if position < len(values):
                values[position] = None
        for name, value in user.items():
            values = self.user.setdefault(name, [])
            values.extend([None] * (position + 1 - len(values)))
            values[position] = value


def check_user_names(known: Collection[str], fields: Collection[str]) -> None:
    """Raise ValueError where a journal would hold too many different user fields."""
    if len(known) + len(fields) > MAX_USER_FIELDS and len({*known, *fields}) > MAX_USER_FIELDS:
        raise ValueError(f"more than {MAX_USER_FIELDS} different user fields; record a value under a fixed name")
