"""Which runs a path given on the command line means."""

from __future__ import annotations

import os
from pathlib import Path

from spikeview.commands.status import CommandError


def refuse_missing(path: str) -> None:
    """Raise CommandError where there is nothing at a path of this machine."""
    from spikeview.importers.elsewhere import is_elsewhere

    if not is_elsewhere(path) and not os.path.lexists(path):
        raise CommandError(f"{path}: no such file or directory; check the path")


def only(path: str) -> str:
    """The path, or the single run in a directory. Raises CommandError for a directory that holds several."""
    from spikeview.importers.naming import listed
    from spikeview.importers.places import places

    found = places(path)
    if len(found) > 1:
        names = [Path(place).relative_to(path).as_posix() for place in found]
        raise CommandError(f"{path}: holds {len(names)} runs, and one is asked for: {listed(names)}")
    return found[0]
