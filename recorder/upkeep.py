"""`python -m recorder verify RUN` and `python -m recorder repair RUN`: what they print, and their exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from recorder.captured import captures_of, faults_of
from recorder.statuses import refuse
from recorder.store import StoreError
from recorder.store.capture_names import unfinished
from recorder.store.documents import events_path, read_events, read_manifest
from recorder.store.folder import ranks
from recorder.store.order import plural
from recorder.store.repair import repair
from recorder.store.verify import Account, verify

WHOLE, NOT_WHOLE = 0, 1
MOST_LINES = 20
MOST_RANKS = 8

_run = click.argument("run", type=click.Path(path_type=Path))
_rank = click.option("--rank", type=click.IntRange(min=0), metavar="K", help="Only this rank; all of them without.")


@click.command("verify", short_help="Say whether a run is whole.")
@_run
@_rank
def verify_command(run: Path, rank: int | None) -> None:
    """Read all of RUN and say whether it is whole, part by part and row by row.

    Exit status: 0 whole, 1 not whole, 2 it cannot be read.
    """
    try:
        manifest = read_manifest(run)
        accounts = [verify(run, number, manifest) for number in _chosen(run, rank)]
        captures = {account.rank: _see_captures(run, account) for account in accounts}
    except (StoreError, OSError) as error:
        refuse(str(error))
    is_whole = not any(account.faults for account in accounts)
    _say(f"{run}: {'whole' if is_whole else 'not whole'}{_state(accounts, manifest)}")
    quiet = [account for account in accounts if not account.faults and not account.remarks]
    if len(quiet) > MOST_RANKS:
        _say(f"  {len(quiet):,} ranks are whole, with {_holds(quiet, captures)}")
    for account in accounts:
        if account not in quiet or len(quiet) <= MOST_RANKS:
            _say(f"  rank {account.rank}: {_holds([account], captures)}")
            _list([f"! {fault}" for fault in account.faults] + account.remarks)
    sys.exit(WHOLE if is_whole else NOT_WHOLE)


@click.command("repair", short_help="Seal what a dead writer left unsealed.")
@_run
@_rank
def repair_command(run: Path, rank: int | None) -> None:
    """Seal what a dead writer left unsealed in RUN, and drop what it never finished. Refused while it is recorded.

    Exit status: 0 nothing was left out, 1 something was, 2 it cannot be repaired.
    """
    try:
        read_manifest(run)
        repairs = repair(run, _chosen(run, rank))
    except (StoreError, OSError) as error:
        refuse(str(error))
    busy = [found for found in repairs if found.done or found.left_out]
    _say(f"{run}: {'repaired' if busy else 'nothing to repair'}")
    for found in busy:
        _say(f"  rank {found.rank}:")
        _list([*found.done, *(f"! left out: {what}" for what in found.left_out)])
    sys.exit(NOT_WHOLE if any(found.left_out for found in busy) else WHOLE)


def _chosen(run: Path, rank: int | None) -> list[int]:
    found = ranks(run)
    if rank is None:
        return found
    if rank not in found:
        raise StoreError(run, f"holds no rank {rank}", "leave --rank out to see those that it holds")
    return [rank]


def _state(accounts: Sequence[Account], manifest: Mapping[str, Any]) -> str:
    if any(account.is_live for account in accounts):
        return " so far, and being recorded"
    return "" if manifest.get("closed") else ", and was not closed"


def _see_captures(run: Path, account: Account) -> int:
    """How many captures there are of a rank; the account is told of what is wrong with them."""
    found = captures_of(run, account.rank)
    for path in found:
        account.faults += faults_of(path)
    begun = unfinished(run, account.rank)
    if begun and not account.is_live:
        account.remarks.append(
            f"{plural(len(begun), 'capture')} never finished: `python -m recorder repair` removes it"
        )
    named = {path.name for path in found}
    for event in read_events(events_path(run, account.rank)).said:
        place = str(event.get("path", "")).removeprefix("captures/")
        if event.get("kind") == "capture" and place and place not in named:
            account.remarks.append(f"captures/{place} was taken and is not there any more")
    return len(found)


def _holds(accounts: Sequence[Account], captures: Mapping[int, int]) -> str:
    """`1,203 rows, 40 rows of layers, 3 events and 1 capture, in 2 parts and 1 journal`."""

    def total(name: str) -> int:
        return sum(getattr(account, name) for account in accounts)

    layers = [f"{plural(total('layers'), 'row')} of layers"] if total("layers") else []
    events = [plural(total("events"), "event")] if total("events") else []
    taken = sum(captures[account.rank] for account in accounts)
    kept = [plural(taken, "capture")] if taken else []
    files = " and ".join(plural(total(f"{kind}s"), kind) for kind in ("part", "journal") if total(f"{kind}s"))
    *others, last = [plural(total("rows"), "row"), *layers, *events, *kept]
    return (f"{', '.join(others)} and {last}" if others else last) + (f", in {files}" if files else "")


def _list(lines: Sequence[str]) -> None:
    for line in lines[:MOST_LINES]:
        _say(f"    {line}")
    if len(lines) > MOST_LINES:
        _say(f"    and {len(lines) - MOST_LINES:,} more")


def _say(line: str) -> None:
    """On one line, with nothing in it that a terminal would obey: names in a run are somebody else's."""
    click.echo("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line))
