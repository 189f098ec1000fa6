"""The three faces of a diagnosis: a card for a terminal, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from spikeview.commands.between import between_items
from spikeview.commands.card import card
from spikeview.commands.lines import show
from spikeview.commands.markdown import between_markdown, markdown
from spikeview.rules.between import Between, plain
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.triage import triage

CARD, MARKDOWN, JSON = "card", "markdown", "json"

Told = dict[str, Any] | None


def tell(diagnosis: Diagnosis, face: str, listed: bool, first: bool) -> Told:
    """Print one run, after a blank line unless it is the `first`. JSON is returned, to be printed at the end."""
    if face == JSON:
        return triage(diagnosis)
    if face == MARKDOWN:
        click.echo(("" if first else "\n") + markdown(diagnosis, listed), nl=False)
    else:
        show(card(diagnosis, listed), first)
    return None


def end(told: Sequence[Told], found: Between | None, face: str, several: bool) -> None:
    """Print what stands after the last run: what the runs share, and all that there is of JSON."""
    if face == JSON and several:
        print_json({"runs": list(told), **({} if found is None else {"between": plain(found)})})
    elif face == JSON and told:
        print_json(told[0])
    elif face == MARKDOWN and found is not None:
        click.echo("\n" + between_markdown(found), nl=False)
    elif found is not None:
        show(between_items(found), first=False)


def print_json(told: Any) -> None:
    """In UTF-8 wherever it goes, as JSON is; a path that is no text there keeps its bytes as escapes."""
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(text.encode("utf-8", "backslashreplace"))
