"""Open a run in the window; where there is no display, draw the same window and report into demo-output/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spikeview.commands.display import has_display

OUTPUT = Path("demo-output")


def spikeview(*arguments: str | Path) -> int:
    """Run the command as a user would and return its exit status."""
    return subprocess.run([sys.executable, "-m", "spikeview", *map(str, arguments)], check=False).returncode


def draw(run: Path) -> int:
    """Write the window and the reports of a run and print its triage table; return the worst exit status."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from spikeview.ui.app import snapshot  # after the platform is chosen

    OUTPUT.mkdir(exist_ok=True)
    print(f"There is no display here, so the window and the reports go to {OUTPUT}/ instead:", flush=True)
    snapshot(str(run), OUTPUT / "window.png")
    print(OUTPUT / "window.png", flush=True)
    reports = [spikeview("report", run, "-o", OUTPUT / name) for name in ("incident.html", "incident.md")]
    found = spikeview("triage", run)
    return max([*reports, 0 if found == 1 else found])  # 1 says that triage found something: here that is the point


if __name__ == "__main__":
    chosen = Path(sys.argv[1])
    sys.exit(spikeview(chosen) if has_display() else draw(chosen))
