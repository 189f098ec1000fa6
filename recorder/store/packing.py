"""From a row as a mapping of columns to the record that goes into a journal."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from recorder.store.layout import PENDING
from recorder.store.rows import Defines, Record, check_user_names
from recorder.store.shapes import Row, Shape, Shapes
from recorder.store.values import Scalar, clean_text, coerce, user_scalar

MOST_TEXTS = 4096
_UNFIT = (KeyError, TypeError, ValueError, OverflowError, struct.error)


class Codes(dict[str, int]):
    """The codes of the texts of one column; 0 for one that has none yet."""

    def __missing__(self, text: str) -> int:
        return 0


class Packer:
    """Makes the records of one journal. A text or a user field counts as known from `keep` on."""

    def __init__(self, shapes: Shapes) -> None:
        self.layout = shapes.layout
        self._shapes = shapes
        self._codes = [Codes() for _ in self.layout.texts]
        self._counts = [1] * len(self.layout.texts)
        self._user: set[str] = set()
        self._take(shapes.of({}))

    def record(self, position: int, row: Row, user: Row | None, pending: bool) -> Record:
        """The record of a row.

        Raises KeyError for a column the table does not have, TypeError or ValueError for a value its column
        cannot hold.
        """
        fields = self._user_fields(user) if user else {}
        try:
            return self._packed(position, row, fields, pending)
        except _UNFIT:
            self._take(self._shapes.of(row))
        try:
            return self._packed(position, row, fields, pending)
        except _UNFIT:  # a value of another type than its column's, if it can be taken at all
            return self._packed(position, self._exact(row), fields, pending)

    def keep(self, defines: Defines, user: Mapping[str, Scalar]) -> None:
        """What a record defines is in the journal now."""
        for column, code, text in defines:
            codes = self._codes[column]
            if len(codes) >= MOST_TEXTS:  # a text a row: to remember them all would only cost memory
                codes.clear()
            self._counts[column] = code + 1  # first: an interrupt must not leave one code to two texts
            codes[text] = code
        if user:
            self._user.update(user)

    def _take(self, shape: Shape) -> None:
        self._shape = shape
        self._known = [self._codes[place] for place in shape.texts]
        self._texts: tuple[Any, ...] = ()
        self._text_codes: list[int] = []

    def _packed(self, position: int, row: Row, user: Mapping[str, Scalar], pending: bool) -> Record:
        """Raises one of _UNFIT where the row is not of the shape at hand or holds what a struct cannot."""
        shape = self._shape
        if len(row) != shape.count or shape.get_nulls(row) != shape.nulls:
            raise KeyError
        texts = shape.get_texts(row)
        defines: Defines = ()
        if texts == self._texts:  # as in the row before
            codes = self._text_codes
        else:
            codes = [known[text] for known, text in zip(self._known, texts)]  # noqa: B905  # they are as many
            if 0 in codes:
                defines = self._define(texts, codes)
            else:
                self._texts, self._text_codes = texts, codes
        flags = PENDING if pending else 0
        numbers = shape.get_numbers(row)
        return shape.pack(position, flags, len(defines), shape.recorded, *numbers, *codes), defines, user

    def _define(self, texts: Sequence[Any], codes: list[int]) -> Defines:
        """Put codes in the place of the zeros, and give the texts that are new."""
        defines = []
        for index, column in enumerate(self._shape.texts):
            if codes[index] == 0:
                text, code = texts[index], 0
                if type(text) is not str or not text.isascii():
                    text = clean_text(self.layout.texts[column], text)
                    code = self._codes[column][text]
                if code == 0:
                    code = self._counts[column]
                    defines.append((column, code, text))
                codes[index] = code
        return defines

    def _exact(self, row: Row) -> Row:
        types = dict(self.layout.columns)
        return {name: value if value is None else _cell(name, types[name], value) for name, value in row.items()}

    def _user_fields(self, user: Row) -> dict[str, Scalar]:
        fields = {clean_text("user field", name): user_scalar(name, value) for name, value in user.items()}
        check_user_names(self._user, fields)
        return fields


def _cell(name: str, dtype: str, value: object) -> object:
    return clean_text(name, value) if dtype == "string" else coerce(name, dtype, value)
