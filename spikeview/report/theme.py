"""The colours and marks of figures on a light page; the eight hues are told apart by the colour-blind and in grey."""

from __future__ import annotations

from typing import Any

LIGHT = {
    "line": "#d9dde3",
    "grid": "#eceff3",
    "text": "#1c2128",
    "muted": "#667080",
    "loss": "#1f77c4",
    "norm": "#b86e00",
    "coefficient": "#7a4fc0",
    "attempted": "#8a94a3",
    "executed": "#0a8a63",
    "scheduled": "#b84a85",
    "cosine": "#8c7a00",
    "bad": "#d0392b",
    "warn": "#a87400",
    "good": "#0a8a63",
    "accent": "#1f6fc4",
}

MARKERS: dict[str, dict[str, Any]] = {
    "nan": {"marker": "D", "s": 26, "color": LIGHT["bad"], "lw": 0},
    "inf": {"marker": "^", "s": 38, "color": LIGHT["bad"], "lw": 0},
    "skipped": {"marker": "x", "s": 28, "color": LIGHT["warn"], "lw": 1.4},
    "zero": {"marker": "o", "s": 20, "facecolors": "none", "edgecolors": LIGHT["muted"], "lw": 1.0},
}
