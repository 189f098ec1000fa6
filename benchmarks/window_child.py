"""What is measured of the window, each in a process of its own: it prints one JSON object as its last line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = (1280, 900)
SIX = ("loss", "grad_norm", "clocks", "alignment", "update_ratio", "learning_rate")
FRAMES, TURN = 120, 20
PATIENCE = 30.0


def empty_window() -> dict[str, Any]:
    """Six panels without a run."""
    app, window = _window()
    _until(app, lambda: window.isVisible())
    return {"painted": time.time()}


def painted(run: str) -> dict[str, Any]:
    """A window on a run: when its curves were on the screen, and how long the GUI thread was ever away."""
    app, window = _window(run)
    gaps = _watchdog(app, window)
    _until(app, lambda: window.session.shown is not None)
    window.plots.panels["loss"].repaint()
    told = {"painted": time.time()}
    patience = time.time() + PATIENCE
    _until(app, lambda: window.session.opener.task is None or time.time() > patience)
    told |= {"diagnosed": time.time()} if window.session.opener.task is None else {}
    window.close()
    return {**told, "away_ms": max(gaps), "closed": time.time()}


def reading(run: str) -> dict[str, Any]:
    """Pyarrow alone, and the run as the window reads it: the columns of six panels, stretch by stretch."""
    import pyarrow.parquet as pq

    from spikeview.ui.opening import columns_of
    from spikeview.ui.ranked import read
    from spikeview.ui.stretches import Job, found_in

    parts = sorted((Path(run) / "steps" / "rank=0").glob("*.parquet"))
    begun = time.perf_counter()
    for part in parts:
        with pq.ParquetFile(part, memory_map=True, page_checksum_verification=True) as file:
            file.read([name for name in file.schema_arrow.names if name in columns_of(SIX)])
    alone = time.perf_counter() - begun
    begun = time.perf_counter()
    nothing: Job[None] = Job(columns_of(SIX), lambda first, rows: None, lambda found: None)
    found_in(read(run, lambda text: None), nothing)
    return {"pyarrow": alone, "reading": time.perf_counter() - begun}


def frames(run: str) -> dict[str, Any]:
    """Milliseconds a frame, as wall clock and as the GUI thread's own CPU time.

    `empty` is a pan of as long a run in which nothing is to be drawn: ground, grid, labels. `still` repaints what has
    not changed. All take turns, so that whatever else runs on the machine slows all of them.
    """
    app, window = _window()
    empty = _resident()
    from spikeview.ui.opening import opened, undiagnosed
    from spikeview.ui.ranked import read

    full = opened(undiagnosed(read(run, lambda text: None)), SIX, diagnosed=False)
    session, rows = window.session, len(full.diagnosis.run)
    session.show(full)
    session.work.close()
    _settle(app)
    resident = _resident()
    bare = opened(undiagnosed(_nothing(rows)), SIX, diagnosed=False)

    def pan(at: int) -> None:
        session.show_range(rows * (0.1 + at * 0.002), rows * (0.7 + at * 0.002))

    def zoom(at: int) -> None:
        half = rows * 0.45 * 0.92**at
        session.show_range(rows * 0.5 - half, rows * 0.5 + half)

    def still(at: int) -> None:
        for widget in (*window.plots.panels.values(), window.plots.axis, window.plots.overview):
            widget.update()

    steps: dict[str, Callable[[int], None]] = {
        "pan": pan,
        "zoom": zoom,
        "scrub": lambda at: session.inspect_row(rows // 2 + at),
        "hover": lambda at: session.hover(rows // 2 + at * (rows // 2000)),
        "still": still,
        "empty": pan,
    }
    spent = {name: Spent() for name in steps}
    for turn in range(0, FRAMES, TURN):
        for name, step in steps.items():
            if window.session.shown is not (wanted := bare if name == "empty" else full):
                session.show(wanted)
                session.work.close()
            session.show_range(rows * 0.2, rows * 0.8)
            _settle(app)
            spent[name].add(app, step, range(turn, turn + TURN))
    shown = 8 * rows * (1 + len(SIX) + 2 + 2)  # step, six curves and the second clock, limit, strip
    told = {name: each.told() for name, each in spent.items()}
    return {**told, "resident_mb": resident, "empty_mb": empty, "shown_mb": shown / 2**20}


def _nothing(rows: int) -> Any:
    """A run of the six panels' columns with two values each, at its beginning."""
    import numpy as np
    import pyarrow as pa

    from recorder.schema import COLUMNS
    from spikeview.run import Run

    names = ("loss", "grad_norm", "attempted_n", "executed_n", "update_cosine", "update_ratio", "lr")
    values = {
        name: pa.concat_arrays([pa.array([1, 1], COLUMNS[name].arrow), pa.nulls(rows - 2, COLUMNS[name].arrow)])
        for name in names
    }
    return Run("nothing", pa.table({"row": np.arange(rows), "step": np.arange(rows), **values}), {})


def endurance(run: str) -> dict[str, Any]:
    """After 50 runs opened and closed: threads and resident memory over the next 150."""
    import gc
    import threading

    app, _ = _window()
    sizes, threads = [], []
    for number in range(200):
        _, window = _window()
        window.session.opener.open(run)
        _until(app, lambda window=window: window.session.opener.task is None)
        window.grab()
        window.close()
        app.sendPostedEvents(None, 52)  # deferred deletions
        _settle(app)
        if number % 10 == 9:
            gc.collect()
        if number >= 50:
            sizes.append(_resident())
            threads.append(len(list(Path("/proc/self/task").iterdir())))
    half = len(sizes) // 2
    return {
        "first_mb": sum(sizes[:half]) / half,
        "last_mb": sum(sizes[half:]) / half,
        "threads": sorted(set(threads)),
        "python_threads": threading.active_count(),
    }


def _window(run: str | None = None) -> tuple[Any, Any]:
    """As `spikeview RUN` starts it, with six panels."""
    from spikeview.commands.view import load

    # once: it has the collector leave alone all that is there by then, and windows would be among it
    program = sys.modules.get("spikeview.ui.app") or load()
    from PySide6.QtWidgets import QApplication

    from spikeview.ui.layout import Layout
    from spikeview.ui.theme import THEMES

    app = QApplication.instance() or program._application(["spikeview"])
    window = program.window_on(run, Layout(shown=frozenset(SIX)), THEMES["dark"])
    window.resize(*SIZE)
    window.show()
    app.processEvents()
    return app, window


def _watchdog(app: Any, window: Any) -> list[float]:
    """What the GUI thread computed between two ticks of a timer, in milliseconds: it answers nothing meanwhile."""
    from PySide6.QtCore import QTimer

    gaps, last = [0.0], [time.thread_time()]

    def tick() -> None:
        now = time.thread_time()
        gaps.append(1e3 * (now - last[0]))
        last[0] = now

    timer = QTimer(window)
    timer.timeout.connect(tick)
    timer.start(2)
    return gaps


def _until(app: Any, holds: Callable[[], bool]) -> None:
    while not holds():
        app.processEvents()
        time.sleep(0.001)
    app.processEvents()


def _settle(app: Any) -> None:
    for _ in range(5):
        app.processEvents()


class Spent:
    """What frames took, in milliseconds: by the clock, and of the thread's own."""

    def __init__(self) -> None:
        self._walls: list[float] = []
        self._own: list[float] = []

    def add(self, app: Any, step: Callable[[int], None], frames: range) -> None:
        """Take a step, and paint what follows from it, so many times."""
        for at in frames:
            wall, mine = time.perf_counter(), time.thread_time()
            step(at)
            app.processEvents()
            self._walls.append(1e3 * (time.perf_counter() - wall))
            self._own.append(1e3 * (time.thread_time() - mine))

    def told(self) -> dict[str, float]:
        """The median and the 95th percentile of both."""
        walls, own = sorted(self._walls), sorted(self._own)
        middle, high = len(walls) // 2, round(0.95 * len(walls)) - 1
        return {"median": walls[middle], "p95": walls[high], "cpu_median": own[middle], "cpu_p95": own[high]}


def timed(app: Any, step: Callable[[int], None]) -> dict[str, float]:
    """One step and the frame it leads to, FRAMES times."""
    spent = Spent()
    spent.add(app, step, range(FRAMES))
    return spent.told()


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


if __name__ == "__main__":
    answer = globals()[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(answer), flush=True)
