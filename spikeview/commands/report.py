"""`spikeview report RUN -o FILE`: the report to hand to a colleague."""

from __future__ import annotations

from pathlib import Path

import click

from spikeview.commands.status import NOTHING_FOUND, CommandError


@click.command(short_help="Write a report on a run's incidents to one file.")
@click.argument("run", type=click.Path())
@click.option("--incident", type=click.IntRange(min=1), metavar="N", help="Only the Nth incident, counted from 1.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file: .html, .md or .json.")
def report(run: str, incident: int | None, output: Path) -> int:
    """Write a report on the incidents of RUN to one self-contained file, in the format of its suffix."""
    from spikeview.importers import open_run
    from spikeview.report.content import ReportError
    from spikeview.report.export import write_report
    from spikeview.rules.diagnosis import diagnose

    diagnosis = diagnose(open_run(run))
    try:
        written = write_report(diagnosis, incident, output)
    except ReportError as error:
        raise CommandError(str(error)) from error
    click.echo(str(written))
    return NOTHING_FOUND
