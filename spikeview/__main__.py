"""The process: `spikeview` and `python -m spikeview`."""

from __future__ import annotations

import sys

from spikeview.commands.interrupt import leave_at_once


def main() -> int:
    """Run the command line of this process and give its exit status."""
    leave_at_once()
    from spikeview.cli import main as run  # most of the time of a start goes by in here

    return run()


if __name__ == "__main__":
    sys.exit(main())
