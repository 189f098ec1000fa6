"""Arrays that grow at their end: what was handed out stays as it is, and is not copied for what comes after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROOM = 1 / 8
LEAST_ROOM = 1024
# Of so many earlier readings it is known how many rows are the same as theirs.
READINGS = 1024


class Room:
    """An array with free room behind its `used` first values, which never change."""

    def __init__(self, values: Array, length: int) -> None:
        self.values = np.empty(length + int(length * ROOM) + LEAST_ROOM, dtype=values.dtype)
        self.values[: len(values)] = values
        self.used = len(values)
        self._lock = Lock()

    def take(self, first: int, last: int) -> bool:
        """Take the room from `first` to `last`, where it is free and there is so much; each place is taken once."""
        with self._lock:
            free = self.used == first and last <= len(self.values)
            self.used = last if free else self.used
        return free


@dataclass(frozen=True)
class Grown:
    """An array that cannot be written to, and the room that it lies in."""

    values: Array
    room: Room | None = None

    @classmethod
    def of(cls, values: Array) -> Grown:
        values.flags.writeable = False
        return cls(values)

    def followed(self, rows: int, tail: Array) -> Grown:
        """The first `rows` of the values, and then these."""
        rows, tail = self._beyond(rows, tail)
        length, room = rows + len(tail), self.room
        if room is None or not room.take(rows, length):
            room = Room(self.values[:rows], length)
            room.take(rows, length)
        room.values[rows:length] = tail
        values = room.values[:length]
        values.flags.writeable = False
        return Grown(values, room)

    def _beyond(self, rows: int, tail: Array) -> tuple[int, Array]:
        """What of the tail is not there yet: a row that was amended has changed in few of its columns."""
        old = self.values[rows:]
        again = tail[: len(old)]
        same = list(old) == list(again) if old.dtype == object else old.tobytes() == again.tobytes()
        return (rows + len(old), tail[len(old) :]) if same else (rows, tail)


@dataclass(frozen=True, eq=False)
class Reading:
    """One reading of rows that grow; `before` has the mark of each earlier one, latest first.

    Beside it stands how many of its first rows have been the same ever since.
    """

    before: tuple[tuple[object, int], ...] = ()
    mark: object = field(default_factory=object)

    def followed(self, unchanged: int) -> Reading:
        """The next reading, which shares so many first rows with this one."""
        earlier = [(mark, min(rows, unchanged)) for mark, rows in self.before[: READINGS - 1]]
        return Reading(((self.mark, unchanged), *earlier))

    def follows(self, earlier: Reading) -> bool:
        """Whether it is a later one of the same rows."""
        return any(mark is earlier.mark for mark, _ in self.before)

    def unchanged_since(self, earlier: Reading) -> int:
        """How many first rows are as they were at an earlier reading; 0 where it is none of the same rows."""
        return next((rows for mark, rows in self.before if mark is earlier.mark), 0)
