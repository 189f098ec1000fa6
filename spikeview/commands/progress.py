"""How far something is, for whoever waits at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """One line on a terminal that tells what is being done, and goes away after it."""
    waited_for = sys.stderr is not None and sys.stderr.isatty()
    stands = ""

    def tell(text: str) -> None:
        nonlocal stands
        if waited_for and text != stands:
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)
            stands = text

    try:
        yield tell
    finally:
        tell("")
