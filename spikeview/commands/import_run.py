"""`spikeview import SRC -o RUN`: a foreign log as a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices
from spikeview.commands.interrupt import unwinding
from spikeview.commands.places import only
from spikeview.commands.progress import progress
from spikeview.commands.status import NOTHING_FOUND, CommandError

if TYPE_CHECKING:
    from spikeview.importers import Asked


@click.command("import", short_help="Write a foreign log as a run directory.")
@click.argument("source", metavar="SRC")
@click.option("-o", "--output", metavar="RUN", required=True, type=Path, help="The directory to write.")
@log_choices
def import_run(source: str, output: Path, asked: Asked) -> int:
    """Read the training log SRC, a file, a folder or a URL, and write it as the run directory RUN.

    What it holds, and what its numbers mean, goes with it; what it does not hold is not recorded.
    """
    from recorder.store import StoreError, is_run
    from recorder.store.lazy_table import in_memory
    from recorder.store.whole import write_run
    from spikeview.importers import open_run, runs_in
    from spikeview.importers.naming import listed
    from spikeview.meaning import is_log

    source = only(source)
    if asked.run is None and len(names := runs_in(source)) > 1:
        raise CommandError(f"{source}: holds {len(names)} runs; choose one with --run NAME: {listed(names)}")
    with progress() as tell, unwinding():
        run = open_run(source, None, tell, asked)
        if is_run(source) or not is_log(run):
            raise CommandError(f"{source}: is a run directory already; copy it instead")
        tell(f"writing {output}")
        try:
            write_run(output, in_memory(run.table), run.manifest, run.events)
        except StoreError as error:
            raise CommandError(str(error)) from error
    for note in run.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(click.format_filename(output))
    return NOTHING_FOUND
