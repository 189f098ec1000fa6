"""Figures are drawn alike for everybody: without the user's matplotlibrc, and without a cache in anybody's home."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

PLACE = "MPLCONFIGDIR"


@contextmanager
def settings_of_its_own() -> Iterator[None]:
    """Matplotlib is imported here: it looks for settings and writes its list of fonts only while it is."""
    if sys.modules.get("matplotlib"):
        yield
        return
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns that looking for fonts takes long
    before = os.environ.get(PLACE)
    with tempfile.TemporaryDirectory(prefix="spikeview-") as place:
        os.environ[PLACE] = place
        try:
            import matplotlib.backends.backend_svg
            import matplotlib.figure  # noqa: F401

            yield
        finally:
            if before is None:
                del os.environ[PLACE]
            else:
                os.environ[PLACE] = before
