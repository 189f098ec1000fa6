"""`spikeview report RUN -o FILE`: the report to hand to a colleague."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices, rank_or_all
from spikeview.commands.diagnosing import diagnosing
from spikeview.commands.interrupt import unwinding
from spikeview.commands.status import NOTHING_FOUND
from spikeview.commands.writing import exporting

if TYPE_CHECKING:
    from spikeview.importers import Asked


@click.command(short_help="Write a report on a run's incidents to one file.")
@click.argument("run")
@click.option(
    "--incident",
    "incidents",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Only the Nth incident, counted from 1; may be given again for further ones.",
)
@click.option(
    "--rank",
    callback=rank_or_all,
    metavar="K|all",
    help="The rank to read, or all of them; else the first that has rows.",
)
@click.option("--rows", type=click.IntRange(0, 100), default=4, show_default=True, help="Neighbours on either side.")
@click.option("--note", metavar="TEXT", default="", help="A word of your own at the head of the report.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("-o", "--output", metavar="FILE", required=True, type=Path, help="The file: .html, .md or .json.")
@log_choices
def report(
    run: str,
    incidents: tuple[int, ...],
    rank: int | str | None,
    rows: int,
    note: str,
    force: bool,
    output: Path,
    asked: Asked,
) -> int:
    """Write a report on the incidents of RUN to one self-contained file, in the format of its suffix.

    Of a folder or a log that holds several runs, give a folder as FILE: an index.html goes there, and a page for each
    run.
    """
    from spikeview.report.destination import put, refuse
    from spikeview.report.export import face_of, render
    from spikeview.report.index import write_index

    with exporting() as told:
        refuse(output, force)
        runs = diagnosing(run, rank, asked)
        if len(runs) > 1:
            if incidents:
                raise click.UsageError(f"--incident is of one run, and {run} holds {len(runs)}")
            with unwinding():
                write_index(runs, output, note=note, rows=rows, replace=force, told=told)
        else:
            face_of(output)
            [diagnosed] = runs.values()
            text = render(diagnosed(), incidents or None, output, told, note=note, rows=rows)
            with unwinding():
                put(output, text, force)
    click.echo(click.format_filename(output))
    return NOTHING_FOUND
