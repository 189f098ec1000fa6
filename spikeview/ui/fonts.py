"""The system's own two fonts, the only ones that are on every machine."""

from __future__ import annotations

from functools import cache, lru_cache

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo, QFontMetricsF

SMALLEST = 12


@cache
def base_size() -> int:
    """Pixels of body text: the system's size when first asked, at least 12. Everything else is measured in it."""
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    return max(SMALLEST, QFontInfo(system).pixelSize())


def scaled(length: float) -> int:
    """A length given for 12-pixel text, for the text there is."""
    return round(length * base_size() / SMALLEST)


def interface_font(size: float = 12, bold: bool = False) -> QFont:
    """The interface font, to be used and not changed; `size` is for 12-pixel body text and scales with it."""
    return _font(QFontDatabase.SystemFont.GeneralFont, size, bold)


def fixed_font(size: float = 12, bold: bool = False) -> QFont:
    """The fixed-width font, for numbers that stand in columns."""
    return _font(QFontDatabase.SystemFont.FixedFont, size, bold)


@cache
def _font(kind: QFontDatabase.SystemFont, size: float, bold: bool) -> QFont:
    font = QFontDatabase.systemFont(kind)
    font.setPixelSize(scaled(size))
    font.setBold(bold)
    return font


_METRICS: dict[str, QFontMetricsF] = {}


def metrics(font: QFont) -> QFontMetricsF:
    """The font's measures, which Qt takes long to make."""
    key = font.key()
    if key not in _METRICS:
        _METRICS[key] = QFontMetricsF(font)
    return _METRICS[key]


@lru_cache(maxsize=4096)
def _advance(key: str, text: str) -> float:
    return _METRICS[key].horizontalAdvance(text)


def advance(font: QFont, text: str) -> float:
    """The width of a text in pixels."""
    metrics(font)
    return _advance(font.key(), text)
