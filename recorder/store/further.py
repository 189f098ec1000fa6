"""What the records of a journal hold beyond their blocks: new texts, and the user's fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorder.store.journal import TEXT
from recorder.store.rows import check_user_names
from recorder.store.values import Scalar, clean_text, user_scalar

Texts = Sequence[Sequence[str | None]]

_from_json = json.JSONDecoder().decode
_AS_THEY_ARE = (float, bool, type(None))


class Further:
    """The texts that records define, the names of the user's fields as written and as read, and the fields by record.

    It begins with the texts and names that the records before have left.
    """

    def __init__(self, texts: Texts, names: Mapping[str, str]) -> None:
        self.texts = [list(known) for known in texts]
        self.names = dict(names)
        self.fields: dict[int, dict[str, Scalar]] = {}

    def read(self, data: bytes, record: int, begin: int, end: int, defines: int) -> None:
        """Read what follows the block of one record. Raises what it is where that cannot be read."""
        for _ in range(defines):
            column, code, length = TEXT.unpack_from(data, begin)
            begin += TEXT.size + length
            known = self.texts[column]
            if begin > end or not 0 < code <= len(known):
                raise ValueError("no text that can follow those before it")
            known[code : code + 1] = [data[begin - length : begin].decode()]
        if begin < end:
            self.fields[record] = self._user(_from_json(data[begin:end].decode()))

    def columns(self, records: NDArray[np.int64]) -> dict[str, list[Scalar]]:
        """The user's fields of these records as columns."""
        places = {record: place for place, record in enumerate(records.tolist())} if self.fields else {}
        columns: dict[str, list[Scalar]] = {}
        for record, given in self.fields.items():
            for name, value in given.items():
                column = columns.get(name)
                if column is None:
                    column = columns[name] = [None] * len(records)
                if record in places:
                    column[places[record]] = value
        return columns

    def _user(self, given: Any) -> dict[str, Scalar]:
        if not isinstance(given, dict):
            raise ValueError("user fields are not an object")
        names = self.names
        if not names.keys() >= given.keys():
            check_user_names(names, given)
            names.update({name: clean_text("user field", name) for name in given})
        return {
            names[name]: value if type(value) in _AS_THEY_ARE else user_scalar(name, value)
            for name, value in given.items()
        }
