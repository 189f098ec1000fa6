"""Unpacking a zip file that anybody may have made: nothing leaves its place, and nothing grows without end."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from spikeview.importers.errors import RunError

MOST_ENTRIES = 10_000
LARGEST = 4 * 2**30
RATIO, UNSUSPICIOUS = 200, 64 * 2**20
MOST_CELLS = 2_000_000_000

ANEW = "get it anew from whom you trust"
# What a run directory holds of rows, and what came of replays; the rest of a bundle is for people.
_WANTED = re.compile(
    r"run\.json|events(-rank=\d{1,9})?\.jsonl|(steps|layers)/rank=\d{1,9}/part-\d{6,9}\.parquet"
    r"|captures/row-\d{6,18}(-rank=\d{1,9})?/replay\.json",
    re.ASCII,
)
_ENCRYPTED = 0x1


@contextmanager
def archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip file every entry of which may be read. Raises RunError, one line, where one may not."""
    try:
        with zipfile.ZipFile(path) as opened:
            _check(path, opened.infolist())
            yield opened
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise RunError(f"{path}: is a damaged zip file ({error}); {ANEW}") from error


def content(path: Path, opened: zipfile.ZipFile, name: str, largest: int) -> bytes:
    """The bytes of one entry. Raises RunError where it is larger than that."""
    entry = opened.getinfo(name)
    if entry.file_size > largest:
        raise RunError(f"{path}: its {name} holds {entry.file_size:,} bytes, more than any such file; {ANEW}")
    return opened.read(entry)


def unpack(path: Path, opened: zipfile.ZipFile, prefix: str, place: Path) -> None:
    """Put the files of a run directory that lie under a prefix into an empty directory; others stay where they are."""
    names = {
        entry.filename.removeprefix(prefix): entry for entry in opened.infolist() if entry.filename.startswith(prefix)
    }
    wanted = {name: entry for name, entry in names.items() if _WANTED.fullmatch(name)}
    _check_sizes(path, list(wanted.values()))
    for name, entry in wanted.items():
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(entry) as packed, target.open("xb") as out:
            shutil.copyfileobj(packed, out)
    _check_cells(path, place)


def _check(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_ENTRIES:
        raise RunError(f"{path}: holds {len(entries):,} files, more than the {MOST_ENTRIES:,} of a bundle; {ANEW}")
    seen: set[str] = set()
    for entry in entries:
        wrong = _wrong(entry, seen)
        if wrong:
            raise RunError(f"{path}: holds {entry.filename[:80]!r}, which {wrong}; {ANEW}")
        seen.add(entry.filename)


def _check_sizes(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    size, packed = (sum(getattr(entry, of) for entry in entries) for of in ("file_size", "compress_size"))
    if size > LARGEST:
        raise RunError(f"{path}: unpacks to {size:,} bytes, more than the {LARGEST:,} of a bundle; {ANEW}")
    if size > UNSUSPICIOUS and size > RATIO * packed:
        raise RunError(f"{path}: unpacks to {size:,} bytes out of {packed:,}, as only a zip bomb does; {ANEW}")


def _wrong(entry: zipfile.ZipInfo, seen: set[str]) -> str | None:
    """Why a name may not be unpacked; None where it may. A zip file can hold the name of any place."""
    name = entry.filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if name.startswith(("/", "\\")) or "\\" in name or ":" in name or ".." in name.split("/"):
        return "leads out of the bundle"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device, and no file"
    if name in seen:
        return "is there twice"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    return None


def _check_cells(path: Path, place: Path) -> None:
    """A few bytes of Parquet can stand for any number of rows: they are counted before they are read."""
    cells = 0
    for part in place.glob("*/*/part-*.parquet"):
        try:
            found = pq.read_metadata(part)
        except (OSError, ValueError):  # damaged: whoever reads the rows says so
            continue
        cells += found.num_rows * found.num_columns
    if cells > MOST_CELLS:
        raise RunError(f"{path}: holds {cells:,} values, more than the {MOST_CELLS:,} of a bundle; {ANEW}")
