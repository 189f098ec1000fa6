"""What a command may be told of a foreign log: which column is which, and which of several runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from spikeview.importers import Asked
from spikeview.importers.naming import parse_map

Function = Callable[..., Any]

ALL = "all"


def rank_or_all(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """The number of a rank, or ALL."""
    if value is None or value == ALL:
        return value
    if not (value.isascii() and value.isdecimal()):
        raise click.BadParameter(f"{value!r} is no rank: give its number, or {ALL}")
    return int(value)


def log_choices(function: Function) -> Function:
    """Give a command `--map` and `--run`, which it takes together as `asked`."""

    @click.option(
        "--map",
        "pairs",
        multiple=True,
        metavar="COLUMN=NAME",
        help="Of a foreign log: take COLUMN from what it calls NAME, as in loss=train/loss.",
    )
    @click.option("--run", "name", metavar="NAME", help="Of several runs in one file or folder: the one of this name.")
    @functools.wraps(function)
    def told(*arguments: Any, pairs: tuple[str, ...], name: str | None, **options: Any) -> Any:
        return function(*arguments, asked=Asked(mapping=parse_map(pairs), run=name), **options)

    return told
