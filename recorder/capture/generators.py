"""The state of every generator that a forward may draw from, kept at little cost from row to row."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import torch

# A key of 624 words and a position: what a draw from the twister changes.
_TWISTER_BYTES = 625 * 4


class Generators:
    """Reads the states of torch's, CUDA's, numpy's and Python's global generators."""

    def __init__(self) -> None:
        self._numpy: dict[str, Any] | None = None
        self._words = b""

    def states(self) -> dict[str, Any]:
        """By the generator's name."""
        held = {"torch": torch.get_rng_state(), "numpy": self._numpy_state(), "python": random.getstate()}
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's own
            held["cuda"] = torch.cuda.get_rng_state_all()
        return held

    def _numpy_state(self) -> dict[str, Any]:
        """The state that was read last, where nothing was drawn since: reading it takes numpy 50 microseconds.

        A normal number that is held over is drawn without a change of the words, so then they tell nothing.
        """
        twister = np.random.get_bit_generator()  # type: ignore[attr-defined]  # numpy exports it at runtime alone
        words = b""
        if isinstance(twister, np.random.MT19937):
            words = ctypes.string_at(twister.ctypes.state_address, _TWISTER_BYTES)
        if self._numpy is None or not words or words != self._words or self._numpy["has_gauss"]:
            self._numpy = np.random.get_state(legacy=False)  # noqa: NPY002  # the global one is what a loop uses
            self._words = words
        assert self._numpy is not None
        return self._numpy
