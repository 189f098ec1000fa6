"""Lines for a person at a terminal: marks in front, wrapped at whole words, colour only where it is seen."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from spikeview.format import printable

WIDEST = 100
NARROWEST = 40

# What stands in front of an item, and the item itself, which stays right of it where it wraps.
Item = tuple[Text, Text]

BLANK: Item = (Text(), Text())


def show(items: Iterable[Item], first: bool = True) -> None:
    """Print items to standard output, after a blank line unless they are the `first`."""
    console = Console(highlight=False, emoji=False)
    width = max(NARROWEST, min(console.width, WIDEST))
    with console.capture() as captured:  # rich itself would end the process on a broken pipe
        for head, body in items:
            for line in wrapped(body, width - len(head)):
                console.print(Text.assemble(head, line), soft_wrap=True)
                head = Text(" " * len(head))
    click.echo(("" if first else "\n") + captured.get(), nl=False)


def wrapped(text: Text, width: int) -> list[Text]:
    """The text in lines of whole words; one that is longer than a line stays whole: paths and ids are to be copied.

    So are commands: a text that is not to be wrapped (`no_wrap`) is one line.
    """
    if text.no_wrap:
        return [text]
    breaks, begin = [], 0
    for word in re.finditer(r"\S+", text.plain):
        if word.start() > begin and cell_len(text.plain[begin : word.end()]) > width:
            begin = word.start()
            breaks.append(begin)
    lines = list(text.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def item(mark: str, mark_style: str, text: str, style: str = "") -> Item:
    """A mark and what it marks."""
    return Text(f"  {mark} ", style=mark_style), Text(printable(text), style=style)


def heading(text: str) -> Item:
    """What stands over some items."""
    return Text(), Text(text, style="bold")


def lower(text: str) -> str:
    """The text as it reads within a sentence."""
    return text[:1].lower() + text[1:]
