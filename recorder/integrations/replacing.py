"""A method of one object replaced for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Within, `owner.name` is `make(owner.name)`. What somebody else puts over it meanwhile is left there."""
    mine = make(getattr(owner, name))
    before = vars(owner).get(name)
    setattr(owner, name, mine)
    try:
        yield
    finally:
        if vars(owner).get(name) is mine:
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
