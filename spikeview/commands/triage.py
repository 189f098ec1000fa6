"""`spikeview triage RUN`: the diagnosis on a terminal, as JSON or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices, rank_or_all
from spikeview.commands.reading import read_all, read_ranks
from spikeview.commands.status import FOUND, NOTHING_FOUND, UNREADABLE

if TYPE_CHECKING:
    from spikeview.importers import Asked
    from spikeview.rules.diagnosis import Diagnosis

FAIL_ON = {"warning": ("warning", "critical"), "critical": ("critical",), "never": ()}


@click.command(short_help="Name the incidents of a run and the first place to look.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help='Print JSON: an object, or {"runs": [...]} for several runs.')
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, to paste where colleagues read it.")
@click.option("--checklist", "listed", is_flag=True, help="Add the common mistakes and what to verify before a launch.")
@click.option(
    "--fail-on",
    type=click.Choice(list(FAIL_ON)),
    default="warning",
    show_default=True,
    help="The severity from which incidents and failed checks give status 1.",
)
@click.option(
    "--rank",
    callback=rank_or_all,
    metavar="K|all",
    help="The rank to read, or all of them; else the first that has rows.",
)
@log_choices
def triage(
    runs: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
    listed: bool,
    fail_on: str,
    rank: int | str | None,
    asked: Asked,
) -> int:
    """Name the incidents of each RUN, what the recorded columns say about them, and the first place to look.

    A RUN is a path or a URL: s3:// and gs://, or any that an installed fsspec serves (docs/elsewhere.md). Of a
    directory that is no run, the runs in it are read. Of several runs it is also said which batches and steps spike in
    more than one of them, and which in one alone.

    Exit status: 0 nothing found, 1 incidents or failed checks, 2 a run could not be read, 3 a fault of spikeview
    itself.
    """
    from spikeview.commands import faces
    from spikeview.format import printable
    from spikeview.importers import RunError
    from spikeview.importers.places import places
    from spikeview.rules.between import Spikes, between, spikes
    from spikeview.rules.triage import worst

    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    face = faces.JSON if as_json else faces.MARKDOWN if as_markdown else faces.CARD
    paths = [place for path in runs for place in places(path)]
    status = NOTHING_FOUND
    told: list[faces.Told] = []
    onsets: list[Spikes] = []
    for path in paths:
        try:
            for diagnosis in _diagnoses(path, rank, asked):
                if worst(diagnosis) in FAIL_ON[fail_on]:
                    status = max(status, FOUND)
                told.append(faces.tell(diagnosis, face, listed, first=not told))
                onsets.append(spikes(diagnosis, _unlike(diagnosis.run.path, [each.run for each in onsets])))
        except RunError as error:
            click.echo(f"spikeview: {printable(str(error))}", err=True)
            status = UNREADABLE
    found = between(onsets) if len(onsets) > 1 else None
    faces.end(told, found, face, several=len(paths) > 1 or len(told) > 1)
    return status


def _diagnoses(path: str, rank: int | str | None, asked: Asked) -> Iterator[Diagnosis]:
    from spikeview.rules.across_ranks import diagnose_ranks
    from spikeview.rules.diagnosis import diagnose

    if isinstance(rank, str):
        yield diagnose_ranks(read_ranks(path))
    else:
        yield from map(diagnose, read_all(path, rank, asked))


def _unlike(name: str, names: list[str]) -> str:
    """The name, with a number behind it where there is one like it: a file may hold several runs."""
    count = sum(each == name or each.startswith(f"{name} (") for each in names)
    return f"{name} ({count + 1})" if count else name
