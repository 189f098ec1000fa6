"""`spikeview triage RUN`: the diagnosis on a terminal, or as JSON."""

from __future__ import annotations

import json
from typing import Any

import click

from spikeview.commands.status import FOUND, NOTHING_FOUND, UNREADABLE


@click.command(short_help="Name the incidents of a run and the first place to look.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help='Print JSON: an object, or {"runs": [...]} for several runs.')
@click.option("--rank", type=click.IntRange(min=0), metavar="K", help="The rank to read; else the first that has rows.")
def triage(runs: tuple[str, ...], as_json: bool, rank: int | None) -> int:
    """Name the incidents of each RUN, what the recorded columns say about them, and the first place to look.

    Exit status: 0 nothing found, 1 incidents or failed checks, 2 a run could not be read, 3 a fault of spikeview
    itself.
    """
    from spikeview.commands.card import show
    from spikeview.format import printable
    from spikeview.importers import RunError, open_run
    from spikeview.rules import triage as plain
    from spikeview.rules.diagnosis import diagnose

    status = NOTHING_FOUND
    told: list[dict[str, Any]] = []
    for path in runs:
        try:
            diagnosis = diagnose(open_run(path, rank))
        except RunError as error:
            click.echo(f"spikeview: {printable(str(error))}", err=True)
            status = UNREADABLE
            continue
        if plain.found_something(diagnosis):
            status = max(status, FOUND)
        if not as_json:
            show(diagnosis, first=not told)
        told.append(plain.triage(diagnosis))
    if as_json and len(runs) > 1:
        _print_json({"runs": told})
    elif as_json and told:
        _print_json(told[0])
    return status


def _print_json(told: dict[str, Any]) -> None:
    """In UTF-8 wherever it goes, as JSON is; a path that is no text there keeps its bytes as escapes."""
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(text.encode("utf-8", "backslashreplace"))
