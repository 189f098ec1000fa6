"""Take the README's pictures anew: the window on a sample run, in dark and in light, drawn offscreen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUN = ROOT / "sample_runs" / "update_against_gradient"


def main() -> None:
    """Write docs/window-dark.png and docs/window-light.png, of the run named on the command line or of RUN."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from spikeview.ui.app import snapshot  # after the platform is chosen

    run = sys.argv[1] if len(sys.argv) > 1 else str(RUN)
    for theme in ("dark", "light"):
        picture = ROOT / "docs" / f"window-{theme}.png"
        snapshot(run, picture, theme)
        print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
