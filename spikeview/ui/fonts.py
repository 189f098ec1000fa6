"""The system's own two fonts, the only ones that are on every machine."""

from __future__ import annotations

from functools import cache

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo

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
    """The interface font; `size` is for 12-pixel body text and scales with it."""
    return _font(QFontDatabase.SystemFont.GeneralFont, size, bold)


def fixed_font(size: float = 12, bold: bool = False) -> QFont:
    """The fixed-width font, for numbers that stand in columns."""
    return _font(QFontDatabase.SystemFont.FixedFont, size, bold)


def _font(kind: QFontDatabase.SystemFont, size: float, bold: bool) -> QFont:
    font = QFontDatabase.systemFont(kind)
    font.setPixelSize(scaled(size))
    font.setBold(bold)
    return font
