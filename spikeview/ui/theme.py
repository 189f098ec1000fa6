"""One table of colours, dark and light, and everything Qt needs to be told of it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette

from spikeview.ui.fonts import base_size

# of each role the dark and the light colour
COLOURS: dict[str, tuple[str, str]] = {
    "window": ("#14171c", "#f4f5f7"),
    "panel": ("#1a1e25", "#ffffff"),
    "raised": ("#20252d", "#fafbfc"),
    "line": ("#2b313b", "#d9dde3"),
    "grid": ("#262c35", "#eceff3"),
    "text": ("#dbe1e9", "#1c2128"),
    "muted": ("#8a94a3", "#667080"),
    "loss": ("#6fb7f2", "#1f77c4"),
    "norm": ("#f0a63a", "#b86e00"),
    "coefficient": ("#c59af0", "#7a4fc0"),
    "attempted": ("#8a94a3", "#8a94a3"),
    "executed": ("#3fbf93", "#0a8a63"),
    "scheduled": ("#e487b5", "#b84a85"),
    "cosine": ("#e8d44d", "#8c7a00"),
    "ratio": ("#5fd0c5", "#0f7f8a"),
    "scaler": ("#b0a7f5", "#5a4fcf"),
    "bad": ("#ff6a5a", "#d0392b"),
    "warn": ("#f2c14e", "#a87400"),
    "good": ("#3fbf93", "#0a8a63"),
    "accent": ("#4c9be8", "#1f6fc4"),
    "on_accent": ("#ffffff", "#ffffff"),
}


@dataclass(frozen=True)
class Theme:
    """The colours of one appearance, by role."""

    name: str
    _index: int

    def __getitem__(self, role: str) -> QColor:
        return QColor(COLOURS[role][self._index])

    def tint(self, role: str, strength: float) -> QColor:
        """The colour of a role, so opaque (0 to 1)."""
        colour = self[role]
        colour.setAlphaF(strength)
        return colour


DARK, LIGHT = Theme("dark", 0), Theme("light", 1)
THEMES = {theme.name: theme for theme in (DARK, LIGHT)}


def system_theme() -> Theme:
    """What the desktop asks for; dark where it does not say."""
    return LIGHT if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Light else DARK


def palette(theme: Theme) -> QPalette:
    """For what style sheets do not reach: dialogs, menus of the system, selections."""
    made, role = QPalette(), QPalette.ColorRole
    for part, colour in (
        (role.Window, "window"),
        (role.Base, "panel"),
        (role.AlternateBase, "raised"),
        (role.Button, "raised"),
        (role.WindowText, "text"),
        (role.Text, "text"),
        (role.ButtonText, "text"),
        (role.ToolTipText, "text"),
        (role.ToolTipBase, "raised"),
        (role.PlaceholderText, "muted"),
        (role.Mid, "line"),
        (role.Highlight, "accent"),
        (role.HighlightedText, "on_accent"),
        (role.Link, "accent"),
    ):
        made.setColor(part, theme[colour])
    for part in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, part, theme["muted"])
    return made


def stylesheet(theme: Theme) -> str:
    """What Qt's widgets look like; painted widgets ask the theme themselves."""
    colour = {role: pair[theme._index] for role, pair in COLOURS.items()}
    size = base_size()
    return _SHEET.format(
        **colour, size=size, small=round(size * 0.92), medium=round(size * 1.1), large=round(size * 1.4)
    )


_SHEET = """
QWidget {{ color: {text}; font-size: {size}px; }}
QMainWindow, QDialog, #plots, #message {{ background: {window}; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; border: none; }}
#header {{ background: {panel}; border-bottom: 1px solid {line}; }}
#foot {{ background: {panel}; border-top: 1px solid {line}; }}
#left {{ background: {window}; border-right: 1px solid {line}; }}
#right {{ background: {window}; border-left: 1px solid {line}; }}
QLabel#heading {{ color: {muted}; font-size: {small}px; font-weight: 600; letter-spacing: 0.6px; }}
QLabel#title {{ font-size: {large}px; font-weight: 600; }}
QLabel#name {{ font-size: {medium}px; font-weight: 600; }}
QLabel#muted, #foot QLabel {{ color: {muted}; }}
QMenuBar {{ background: transparent; }}
QMenuBar::item {{ padding: 4px 8px; background: transparent; color: {muted}; border-radius: 4px; }}
QMenuBar::item:selected {{ background: {raised}; color: {text}; }}
QMenu {{ background: {raised}; border: 1px solid {line}; padding: 4px; }}
QMenu::item {{ padding: 5px 24px 5px 22px; border-radius: 4px; }}
QMenu::item:selected {{ background: {accent}; color: {on_accent}; }}
QMenu::item:disabled {{ color: {muted}; background: transparent; }}
QMenu::separator {{ height: 1px; background: {line}; margin: 4px 6px; }}
QPushButton, QToolButton, QComboBox {{ background: {raised}; border: 1px solid {line}; border-radius: 6px; }}
QPushButton, QToolButton, QComboBox {{ padding: 5px 11px; }}
QComboBox::drop-down {{ border: none; width: 20px; }}
QMenuBar QToolButton {{ background: transparent; border: none; padding: 0px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {muted}; }}
QPushButton:focus, QToolButton:focus, QLineEdit:focus {{ border-color: {accent}; }}
QPushButton:disabled, QToolButton:disabled {{ color: {muted}; }}
QPushButton#primary {{ background: {accent}; border-color: {accent}; color: {on_accent}; }}
QPushButton#primary:disabled {{ background: {raised}; border-color: {line}; color: {muted}; }}
QFrame#stepper {{ background: {raised}; border: 1px solid {line}; border-radius: 6px; }}
QFrame#stepper QToolButton {{ background: transparent; border: none; padding: 4px 8px; }}
QFrame#stepper QToolButton:focus {{ color: {accent}; }}
QPushButton#line {{ background: transparent; border: 1px solid transparent; padding: 1px 0px; text-align: left; }}
QPushButton#line {{ color: {muted}; }}
QPushButton#line:focus, QPushButton#line:hover {{ border-color: {line}; color: {text}; }}
QLineEdit {{ background: {raised}; border: 1px solid {line}; border-radius: 6px; padding: 4px 9px; }}
QListView {{ background: transparent; border: none; outline: none; }}
QTableView {{ background: transparent; border: none; outline: none; gridline-color: transparent; }}
QTableWidget::item {{ padding: 0px 16px 0px 2px; }}
QHeaderView, QHeaderView::section {{ background: transparent; border: none; color: {muted}; }}
QHeaderView::section {{ padding: 0px 0px 0px 2px; font-size: {small}px; }}
QProgressBar {{ background: {line}; border: none; border-radius: 3px; }}
QProgressBar::chunk {{ background: {accent}; border-radius: 3px; }}
QSplitter::handle {{ background: transparent; }}
QScrollBar:vertical {{ background: transparent; width: 8px; margin: 0px; }}
QScrollBar::handle:vertical {{ background: {line}; border-radius: 4px; min-height: 24px; }}
QScrollBar:horizontal {{ background: transparent; height: 8px; margin: 0px; }}
QScrollBar::handle:horizontal {{ background: {line}; border-radius: 4px; min-width: 24px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0px; height: 0px; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {line}; padding: 4px; }}
"""
