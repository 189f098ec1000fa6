"""A file or folder that somebody wants opened, and the bytes an importer may look at to tell what it is."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spikeview.importers.errors import RunError

HEAD = 4 * 2**20
BLOCK = 4 * 2**20
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
UTF_8_MARK = b"\xef\xbb\xbf"
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Source:
    """One place. Only regular files are looked into: a pipe can be read but once."""

    path: Path

    @cached_property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first HEAD bytes of a file, as UTF-8 with plain line ends; nothing of a folder."""
        if self.is_folder:
            return b""
        mode = self.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise RunError(f"{self.path}: is no regular file; write what it holds to one first")
        refuse_pointer(self.path)
        with self.path.open("rb") as file:
            return plain_lines(file.read(HEAD))

    def finds(self, mark: bytes, pattern: re.Pattern[bytes]) -> bool:
        """Whether a line of the head has the pattern. `mark` is a text in each such line: finding it is cheap."""
        return mark in self.head and pattern.search(self.head) is not None

    def holds(self, name: str) -> Path | None:
        """A file of this name in the folder, or the source itself where it is a file of this name."""
        path = self.path / name if self.is_folder else self.path
        return path if path.name == name and path.is_file() else None


def refuse_pointer(path: Path) -> None:
    """Raise RunError where Git left a few lines in the place of a large file."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise RunError(f"{path}: is a Git LFS pointer, not the file itself; run `git lfs pull` to fetch it")


def blocks(path: Path, tell: Callable[[str], None], size: int = BLOCK) -> Iterator[bytes]:
    """A file in blocks of whole lines, as UTF-8 with plain line ends; `tell` hears how far the reading is."""
    refuse_pointer(path)
    total = path.stat().st_size or 1
    done, rest = 0, b""
    with path.open("rb") as file:
        if file.read(2) in UTF_16:
            yield plain_lines(path.read_bytes())
            return
        file.seek(0)
        while data := file.read(size):
            done += len(data)
            tell(f"reading {path.name}: {100 * done // total} %")
            cut = data.rfind(b"\n") + 1
            if cut:
                yield plain_lines(rest + data[:cut])
                rest = data[cut:]
            else:
                rest += data
    if rest:
        yield plain_lines(rest)


def plain_lines(data: bytes) -> bytes:
    """Bytes with UTF-16, byte order marks, carriage returns and colours of a terminal taken out."""
    if data.startswith(UTF_16):
        data = data.decode("utf-16", "replace").encode()
    if b"\x1b" in data:
        data = _ESCAPES.sub(b"", data)
    # a progress bar goes back to the start of its line before it writes it anew
    return data.removeprefix(UTF_8_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def as_text(data: bytes) -> bytes:
    """Bytes that are a text throughout: in the place of what is no UTF-8 stands a sign that says so."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data
