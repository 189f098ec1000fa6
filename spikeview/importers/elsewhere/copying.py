"""Files of another machine copied to this one: several at once, none without bounds, and never waited for in vain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

THREADS = 16
PATIENCE_S = 120.0
CHUNK = 2**20
GROWTH = 256 * 2**20

Sent = Callable[[int], None]
Got = TypeVar("Got")


class SilentError(Exception):
    """Nothing came for so long: the text says how long."""


class EndlessError(Exception):
    """A file sends more than it may: its name is the text."""


class ShortError(Exception):
    """A file sends less than was listed: another is in its place, or the line broke. Its name is the text."""


def copy_files(system: FileSystem, sizes: Mapping[str, int], targets: Mapping[str, Path], sent: Sent) -> None:
    """Copy files to `targets`, both by their path in the system. `sizes` are those listed, 0 where none is told.

    `sent` hears of every block, in bytes. A file that has grown since it was listed may send GROWTH more. Raises
    EndlessError, ShortError, SilentError, and whatever the system does.
    """

    def copy(path: str, went_on: Sent) -> None:
        held = 0
        with system.open_input_stream(path, compression=None) as source, targets[path].open("wb") as target:
            while block := source.read(CHUNK):
                held += len(block)
                if held > sizes[path] + GROWTH:
                    raise EndlessError(path)
                target.write(block)
                went_on(len(block))
        if held < sizes[path]:
            raise ShortError(path)

    in_background([lambda went_on, path=path: copy(path, went_on) for path in targets], sent)  # type: ignore[misc]


def waited_for(call: Callable[[], Got]) -> Got:
    """What a call gives, or SilentError."""
    got: list[Got] = []
    in_background([lambda went_on: got.append(call())], lambda size: None)
    return got[0]


def in_background(jobs: Sequence[Callable[[Sent], None]], sent: Sent) -> None:
    """Do all jobs in threads, and raise what the first to fail raises, or SilentError after PATIENCE_S of nothing.

    A call into a library cannot be interrupted. So it is made in a thread that does not keep the process alive, and is
    left behind when it does not come back.
    """
    waiting = iter(jobs)
    heard: SimpleQueue[int | Exception | None] = SimpleQueue()
    stopped = Event()

    def went_on(size: int) -> None:
        if stopped.is_set():
            raise SilentError
        heard.put(size)

    def work() -> None:
        try:
            while not stopped.is_set() and (job := next(waiting, None)):
                job(went_on)
            heard.put(None)
        except Exception as error:  # noqa: BLE001  # it is raised where the jobs are waited for
            heard.put(error)

    running = min(THREADS, len(jobs))
    for _ in range(running):
        Thread(target=work, daemon=True).start()
    try:
        while running:
            word = heard.get(timeout=PATIENCE_S)
            if isinstance(word, Exception):
                raise word
            if word is None:
                running -= 1
            else:
                sent(word)
    except Empty:
        raise SilentError(f"{PATIENCE_S:g} s") from None
    finally:
        stopped.set()
