"""Writing an export for a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spikeview.commands.progress import progress
from spikeview.commands.status import CommandError


@contextmanager
def exporting() -> Iterator[Callable[[str], None]]:
    """Gives what is told of the progress; what cannot be done ends the command with one line."""
    from spikeview.report.errors import ReportError

    try:
        with progress() as told:
            yield told
    except ReportError as error:
        raise CommandError(str(error)) from error
