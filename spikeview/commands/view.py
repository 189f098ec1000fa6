"""`spikeview RUN`: open the window."""

from __future__ import annotations

import gc
import os
from types import ModuleType
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices
from spikeview.commands.display import has_display
from spikeview.commands.places import refuse_missing
from spikeview.commands.status import CommandError

if TYPE_CHECKING:
    from spikeview.importers import Asked

NO_DISPLAY = "there is no display here; use `spikeview triage RUN` or `spikeview report RUN -o incident.html`"


@click.command(short_help="Open a run in the window; `spikeview RUN` is the same.")
@click.argument("run", required=False)
@log_choices
def view(run: str | None, asked: Asked) -> int:
    """Open RUN in the window; without RUN, an empty one to choose from.

    Of a directory that is no run, and of a file that holds several, the runs are listed to choose from.
    """
    if run is not None:
        refuse_missing(run)
    try:
        app = load()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "PySide6":
            raise
        line = f'the window needs {error.name}, which is not installed; run: pip install "spikeview[view]"'
        raise CommandError(line) from error
    if not os.environ.get("QT_QPA_PLATFORM") and not has_display():  # offscreen, vnc and the like need none
        raise CommandError(NO_DISPLAY)
    return int(app.view(run, asked=asked))


def load() -> ModuleType:
    """The window as a program. Nothing of what is imported is garbage: to look for some takes a tenth of the time."""
    gc.disable()
    try:
        from spikeview.ui import app

        gc.freeze()
    finally:
        gc.enable()
    return app
