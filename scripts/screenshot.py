"""Take the README's pictures anew, or, with a folder given, pictures of every sample run to be looked at.

    python scripts/screenshot.py                  docs/window-dark.png and docs/window-light.png
    python scripts/screenshot.py --into FOLDER    every sample run, dark and light, in two sizes

The window is drawn offscreen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "sample_runs"
RUN = SAMPLES / "update_against_gradient"
THEMES = ("dark", "light")
SIZES = ((1280, 900), (900, 600))


def wanted(folder: Path | None) -> Iterator[tuple[Path, Path, str, tuple[int, int]]]:
    """Run, picture, theme and size of each."""
    if folder is None:
        yield from ((RUN, ROOT / "docs" / f"window-{theme}.png", theme, (1440, 900)) for theme in THEMES)
        return
    for run in sorted(path.parent for path in SAMPLES.glob("*/run.json")):
        for theme in THEMES:
            for width, height in SIZES:
                yield run, folder / f"{run.name}-{theme}-{width}x{height}.png", theme, (width, height)


def main(arguments: list[str]) -> None:
    """Write them, each in the only process there is."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from spikeview.ui.app import snapshot  # after the platform is chosen

    folder = Path(arguments[1]) if arguments[:1] == ["--into"] else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for run, picture, theme, size in wanted(folder):
        snapshot(str(run), picture, theme, size)
        print(picture)


if __name__ == "__main__":
    main(sys.argv[1:])
