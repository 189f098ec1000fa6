"""RUN/captures/: what the captured rows of a run are called, and which of them a killed process left unfinished."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

CAPTURES = "captures"
UNFINISHED = "_tmp-"

_NAME = re.compile(r"row-([0-9]{6,18})(?:-rank=([0-9]{1,9}))?")


def capture_path(run: Path, row: int, rank: int = 0) -> Path:
    """Where the capture of a row lies."""
    return run / CAPTURES / (f"row-{row:06d}" if rank == 0 else f"row-{row:06d}-rank={rank}")


def row_and_rank(name: str) -> tuple[int, int] | None:
    """What a capture of this name is of; None for a name that the recorder does not give."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def finished(run: Path, rank: int) -> list[Path]:
    """What is called as a capture of a rank."""
    return _named(run, "", rank)


def unfinished(run: Path, rank: int) -> list[Path]:
    """What a process that writes, or that was killed, has of a rank's captures that are not in place."""
    return _named(run, UNFINISHED, rank)


def drop_unfinished(run: Path, rank: int) -> list[str]:
    """Delete them; their names. Raises OSError where one cannot be deleted."""
    found = unfinished(run, rank)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return [path.name for path in found]


def _named(run: Path, prefix: str, rank: int) -> list[Path]:
    found = sorted((run / CAPTURES).glob(f"{prefix}row-*"))
    return [path for path in found if (row_and_rank(path.name.removeprefix(prefix)) or (0, -1))[1] == rank]
