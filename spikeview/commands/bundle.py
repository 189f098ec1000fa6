"""`spikeview bundle RUN -o FILE`: an incident with its rows, to hand to a colleague."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices
from spikeview.commands.diagnosing import diagnosis_of
from spikeview.commands.interrupt import unwinding
from spikeview.commands.places import only
from spikeview.commands.status import NOTHING_FOUND
from spikeview.commands.writing import exporting

if TYPE_CHECKING:
    from spikeview.importers import Asked


@click.command(short_help="Pack an incident with its rows and its report into one file.")
@click.argument("run")
@click.option("--incident", type=click.IntRange(min=1), metavar="N", help="The Nth incident, if there are several.")
@click.option("--rank", type=click.IntRange(min=0), metavar="K", help="The rank to read; else the first that has rows.")
@click.option("--redact", is_flag=True, help="Take out host, user, paths, names of batches and free texts.")
@click.option("--captures", is_flag=True, help="Put the captured batches of the rows around it in.")
@click.option("--note", metavar="TEXT", default="", help="A word of your own at the head of the report.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("-o", "--output", metavar="FILE", required=True, type=Path, help="The file: incident.spikeview.zip.")
@log_choices
def bundle(
    run: str,
    incident: int | None,
    rank: int | None,
    redact: bool,
    captures: bool,
    note: str,
    force: bool,
    output: Path,
    asked: Asked,
) -> int:
    """Pack an incident of RUN into one file: the rows around it as a run of their own, the report on it, the manifest.

    `spikeview view` and `spikeview triage` open it as it is. It holds enough rows before the incident, 2,000 unless
    that changes what is said of it, for the same baselines; the rows keep their numbers.
    """
    from spikeview.report.bundle import write_bundle
    from spikeview.report.destination import refuse

    with exporting() as told:
        refuse(output, force)
        diagnosis = diagnosis_of(only(run), rank, asked)
        with unwinding():
            write_bundle(
                diagnosis, incident, output, note=note, redact=redact, captures=captures, replace=force, told=told
            )
    click.echo(click.format_filename(output))
    return NOTHING_FOUND
