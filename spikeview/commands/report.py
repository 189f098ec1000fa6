"""`spikeview report RUN -o FILE`: the report to hand to a colleague."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from spikeview.commands.interrupt import unwinding
from spikeview.commands.status import NOTHING_FOUND, CommandError


@click.command(short_help="Write a report on a run's incidents to one file.")
@click.argument("run")
@click.option("--incident", type=click.IntRange(min=1), metavar="N", help="Only the Nth incident, counted from 1.")
@click.option("--rank", type=click.IntRange(min=0), metavar="K", help="The rank to read; else the first that has rows.")
@click.option("-o", "--output", metavar="FILE", required=True, type=Path, help="The file: .html, .md or .json.")
def report(run: str, incident: int | None, rank: int | None, output: Path) -> int:
    """Write a report on the incidents of RUN to one self-contained file, in the format of its suffix."""
    from spikeview.importers import open_run
    from spikeview.report.content import ReportError
    from spikeview.report.destination import put
    from spikeview.report.export import render
    from spikeview.rules.diagnosis import diagnose

    diagnosis = diagnose(open_run(run, rank))
    try:
        with progress() as told:
            text = render(diagnosis, incident, output, told)
        with unwinding():
            put(output, text)
    except ReportError as error:
        raise CommandError(str(error)) from error
    click.echo(click.format_filename(output))
    return NOTHING_FOUND


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """One line on a terminal that tells what is being done, and goes away after it."""
    waited_for = sys.stderr is not None and sys.stderr.isatty()

    def tell(text: str) -> None:
        if waited_for:
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)

    yield tell
    tell("")
