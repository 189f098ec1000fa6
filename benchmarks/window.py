"""What the window costs: from process start to painted, a frame, and memory. Run as `python -m benchmarks.window`.

Each figure is the least of several processes, for whatever else runs on a machine only ever adds. Without DISPLAY it
is measured offscreen; `xvfb-run -s "-screen 0 1440x900x24" python -m benchmarks.window` measures under an X server.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.long_run import write_long_run

CHILD, OTHERS = "benchmarks.window_child", "benchmarks.other_viewers"
MOMENTS = ("painted", "diagnosed", "closed")
SAMPLE = Path(__file__).parents[1] / "sample_runs" / "update_against_gradient"


def child(module: str, *arguments: str) -> dict[str, Any]:
    """What one process measured; times of day in it are given as seconds since it was started."""
    platform = "xcb" if os.environ.get("DISPLAY") else "offscreen"
    environment = {**os.environ, "QT_QPA_PLATFORM": platform}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: pip compiles modules, not every start
    begun = time.time()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"{module} {arguments}: {done.stderr.strip()[-500:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return {name: value - begun if name in MOMENTS else value for name, value in told.items()}


def least(times: int, key: str, module: str, *arguments: str) -> dict[str, Any]:
    """The one of several processes in which a figure was least."""
    return min((child(module, *arguments) for _ in range(times)), key=lambda told: told[key])


def installed(name: str) -> bool:
    """Whether a library is there to be measured beside."""
    return importlib.util.find_spec(name) is not None


@click.command()
@click.option("--rows", multiple=True, default=(1_000_000, 10_000_000), help="Lengths of the run.")
@click.option("--times", default=5, help="Processes for each start.")
@click.option("--endurance/--no-endurance", default=True, help="200 windows opened and closed.")
def main(rows: tuple[int, ...], times: int, endurance: bool) -> None:
    """Print every figure, and its ratio to an empty window or frame of the same run."""
    print("platform", "xcb" if os.environ.get("DISPLAY") else "offscreen")
    empty = least(times, "painted", CHILD, "empty_window")["painted"]
    print(f"own empty window {empty:.2f} s")
    if installed("pyqtgraph"):
        theirs = least(times, "painted", OTHERS, "pyqtgraph_empty")["painted"]
        print(f"pyqtgraph's empty window {theirs:.2f} s")
        empty = theirs
    sample = least(times, "painted", CHILD, "painted", str(SAMPLE))
    print(f"sample run painted {sample['painted']:.2f} s, {sample['painted'] / empty:.2f} times the empty window")
    for length in rows:
        with tempfile.TemporaryDirectory() as place:
            measure(write_long_run(Path(place) / "run", length), length, empty, times)
    if endurance:
        told = child(CHILD, "endurance", str(SAMPLE))
        print(f"200 windows: {told['first_mb']:.0f} to {told['last_mb']:.0f} MB, threads {told['threads']}")


def measure(run: Path, rows: int, empty: float, times: int) -> None:
    """One length of run."""
    start = least(times, "painted", CHILD, "painted", str(run))
    print(f"\n{rows:,} rows: painted {start['painted']:.2f} s, {start['painted'] / empty:.2f} times the empty window")
    diagnosed = f"diagnosed {start['diagnosed']:.1f} s" if "diagnosed" in start else "diagnosis given up"
    print(
        f"  {diagnosed}, closed {start['closed']:.1f} s; the GUI thread computed {start['away_ms']:.0f} ms at a stretch"
    )
    read = least(times, "reading", CHILD, "reading", str(run))
    print(f"  reading {read['reading']:.2f} s, {read['reading'] / read['pyarrow']:.2f} times pyarrow alone")
    drawn = child(CHILD, "frames", str(run))
    empties = {"the empty frame": drawn["empty"]}
    if installed("pyqtgraph"):
        theirs = child(OTHERS, "pyqtgraph_frames", str(rows))
        empties["pyqtgraph's"] = theirs["empty"]
        drawn["pyqtgraph peak mode, pan"] = theirs["pan"]
    for name, told in drawn.items():
        if isinstance(told, dict):
            times = (f"{told['cpu_median'] / each['cpu_median']:.1f} times {of}" for of, each in empties.items())
            print(
                f"  {name}: median {told['median']:.1f} ms, p95 {told['p95']:.1f} ms; of the thread's own "
                f"{told['cpu_median']:.1f} and {told['cpu_p95']:.1f} ms, {', '.join(times)}"
            )
    whole, above = drawn["resident_mb"], drawn["resident_mb"] - drawn["empty_mb"]
    print(
        f"  memory {whole:.0f} MB, {whole / drawn['shown_mb']:.2f} times the columns shown; without what an empty "
        f"window takes {above:.0f} MB, {above / drawn['shown_mb']:.2f} times"
    )
    if installed("matplotlib"):
        told = child(OTHERS, "matplotlib_pan", str(rows))
        print(f"  matplotlib: first draw {told['first_s']:.1f} s, pan {told['pan_s']:.1f} s")
    if installed("tensorboard"):
        told = child(OTHERS, "tensorboard_load", str(min(rows, 100_000)))
        print(f"  TensorBoard's loader: {told['load_s']:.1f} s for {told['of']:,} rows; it keeps {told['kept']:,}")


if __name__ == "__main__":
    main()
