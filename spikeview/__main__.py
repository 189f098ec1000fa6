"""`python -m spikeview`."""

from __future__ import annotations

import sys

from spikeview.cli import main

if __name__ == "__main__":
    sys.exit(main())
