"""The process: `spikeview` and `python -m spikeview`."""

from __future__ import annotations

import os
import sys

from spikeview.commands.interrupt import leave_at_once
from spikeview.commands.status import INTERRUPTED


def main() -> int:
    """Run the command line of this process and give its exit status."""
    leave_at_once()
    from spikeview.cli import main as run  # most of the time of a start goes by in here

    status = run()
    if status == INTERRUPTED:  # a call to a store may be under way, and its library would wait for it at exit
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
