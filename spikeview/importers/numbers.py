"""Numbers as logs print them."""

from __future__ import annotations

import re

_WRAPPED = re.compile(r"(?:tensor|array|Tensor)\(\s*\[?\s*([^,\])]+)")


def number(text: str) -> float | None:
    """A number, also in quotes, in a printed tensor or with any spelling of NaN and infinity; None for no number.

    >>> number("tensor(2.5, device='cuda:0')"), number("-Infinity"), number("N/A")
    (2.5, -inf, None)
    """
    text = text.strip().strip("'\"").strip()
    if found := _WRAPPED.match(text):
        text = found[1].strip()
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
