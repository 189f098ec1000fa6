"""What a reader reads of a run is fetched from where it lies, read here, and removed again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from recorder.store.documents import MANIFEST, events_path
from recorder.store.folder import rank_of, table_folder
from spikeview.captured import not_here
from spikeview.format import printable
from spikeview.importers.captures import is_replay
from spikeview.importers.elsewhere.copying import EndlessError, ShortError, SilentError, copy_files, waited_for
from spikeview.importers.elsewhere.listing import Remote, listed
from spikeview.importers.elsewhere.reasons import because
from spikeview.importers.elsewhere.system import scheme_of, without_password
from spikeview.importers.errors import RunError
from spikeview.run import Run

Tell = Callable[[str], None]

_TRIES = 5
_ROOM = 0.9  # of what is free on the disk
_LARGE = 16e6  # bytes, from which on one waits


def read_elsewhere(url: str, read: Callable[[Path], Run], rank: int | None, tell: Tell) -> Run:
    """What `read` makes of a copy of the run or file at a URL; of a run, the rows of one rank are copied.

    The run has the URL for its path, less a password, and is not followed: the copy is gone when this returns. `tell`
    hears how far the copying is. Raises RunError, one line, where the URL cannot be served, and what `read` raises.
    """
    named, told = without_password(url), printable(without_password(url))
    if scheme_of(url) == "file":
        return replace(read(_local(url)), path=named)
    try:
        folder = TemporaryDirectory(prefix="spikeview-", ignore_cleanup_errors=True)
    except OSError as error:
        what = f"cannot be copied: there is no place for temporary files ({error.strerror})"
        raise RunError(f"{told}: {what}; set TMPDIR to a directory that can be written") from None
    with folder:
        copy = Path(folder.name) / _name(told)
        _fetch(url, copy, rank, tell)
        try:
            run = read(copy)
        except RunError as error:
            raise RunError(str(error).replace(str(copy), told)) from None
        return replace(run, path=named, captures=not_here(run.captures), source=None)  # the copy is gone


def _fetch(url: str, copy: Path, rank: int | None, tell: Tell) -> None:
    told = printable(without_password(url))
    try:
        for _ in range(_TRIES):
            remote = waited_for(lambda: listed(url))
            with suppress(FileNotFoundError, ShortError):  # a journal was sealed since it was listed
                _copy(told, remote, copy, rank, tell)
                return
    except RunError as error:
        raise RunError(str(error).replace(url, told)) from error.__cause__
    except SilentError as error:
        what = f"did not answer for {error}"
        raise RunError(f"{told}: {what}; check the network, and the endpoint if you set one") from None
    except EndlessError as error:
        raise RunError(f"{told}: {error} sends far more than it is said to hold; copy the run yourself") from None
    except Exception as error:  # whatever a file system of somebody else's raises
        raise RunError(f"{told}: {because(error)}") from error
    raise RunError(f"{told}: changes or breaks off each time it is copied; try again")


def _copy(told: str, remote: Remote, copy: Path, rank: int | None, tell: Tell) -> None:
    """Only what the store itself would read is copied, under the names that the store gives: nothing lands outside."""
    names = [name for name in _read_of(remote.files, copy, rank) if not _is_there(copy / name, remote.files[name][1])]
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
    files = {name: remote.files[name] for name in names}
    total, room = sum(size for _, size in files.values()), shutil.disk_usage(copy.parent).free * _ROOM
    done = 0

    def sent(size: int) -> None:
        nonlocal done
        done += size
        if max(total, done) > room:
            what = f"holds {_megabytes(max(total, done))}, and {copy.parent.parent} has room for {_megabytes(room)}"
            raise RunError(f"{told}: {what}; set TMPDIR to a larger disk")
        if total > _LARGE:
            tell(f"fetching {copy.name}: {_megabytes(done)} of {_megabytes(total)}")

    sent(0)
    targets = {path: copy / name for name, (path, _) in files.items()}
    copy_files(remote.system, dict(files.values()), targets, sent)


def _read_of(files: Collection[str], copy: Path, rank: int | None) -> list[str]:
    """The names of what is read of a run; of the other ranks there are empty folders, so that they are told of."""
    if "" in files:
        return [""]
    ranks = {name: found for name in files if (found := rank_of(name)) is not None}
    with_rows = [found for name, found in ranks.items() if name.startswith("steps/")]
    for found in set(with_rows):
        table_folder(copy, "steps", found).mkdir(parents=True, exist_ok=True)
    chosen = min(with_rows, default=0) if rank is None else rank
    documents = [MANIFEST, events_path(copy, chosen).name]
    return [name for name in files if name in documents or ranks.get(name) == chosen or is_replay(name)]


def _is_there(target: Path, size: int) -> bool:
    """Whether a part was copied before what was listed beside it changed: a part never does."""
    return target.suffix == ".parquet" and target.exists() and target.stat().st_size == size


def _local(url: str) -> Path:
    from urllib.request import url2pathname  # brings in all of http, which a path on this disk does not need

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise RunError(f"{url}: names another machine, which file: does not reach; give the path on this one")
    return Path(url2pathname(parts.path))


def _name(url: str) -> str:
    """The last name in a URL as a directory may be called anywhere."""
    last = re.split(r"[?#]", url)[0].rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"[^A-Za-z0-9._=-]", "_", last)[:100].lstrip(".") or "run"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
