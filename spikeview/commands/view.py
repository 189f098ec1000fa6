"""`spikeview RUN`: open the window."""

from __future__ import annotations

import os

import click

from spikeview.commands.display import has_display
from spikeview.commands.status import CommandError

NO_DISPLAY = "there is no display here; use `spikeview triage RUN` or `spikeview report RUN -o incident.html`"


@click.command(short_help="Open a run in the window; `spikeview RUN` is the same.")
@click.argument("run", required=False)
def view(run: str | None) -> int:
    """Open RUN in the window; without RUN, an empty one to choose from."""
    try:
        from spikeview.ui import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "PySide6":
            raise
        line = f'the window needs {error.name}, which is not installed; run: pip install "spikeview[view]"'
        raise CommandError(line) from error
    if not os.environ.get("QT_QPA_PLATFORM") and not has_display():  # offscreen, vnc and the like need none
        raise CommandError(NO_DISPLAY)
    return app.view(run)
