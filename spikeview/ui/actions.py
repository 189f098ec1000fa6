"""Everything the window can do: where it stands in the menus, its keys, and what it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spikeview.ui.window import Window


@dataclass(frozen=True)
class Command:
    """`needs_run` greys it until a run is shown; an empty `text` is a separator."""

    menu: str
    text: str = ""
    keys: tuple[str, ...] = ()
    call: Callable[[Window], None] = lambda window: None
    needs_run: bool = True


COMMANDS: tuple[Command, ...] = (
    Command("File", "Open a run …", ("O", "Ctrl+O"), lambda window: window.choose_run(), needs_run=False),
    Command("File", "Export the report …", ("E", "Ctrl+E"), lambda window: window.choose_report()),
    Command("File"),
    Command("File", "Quit", ("Ctrl+Q",), lambda window: window.quit(), needs_run=False),
    Command("Go", "Previous row", ("Left",), lambda window: window.session.move(-1)),
    Command("Go", "Next row", ("Right",), lambda window: window.session.move(1)),
    Command("Go", "Ten rows back", ("Shift+Left",), lambda window: window.session.move(-10)),
    Command("Go", "Ten rows on", ("Shift+Right",), lambda window: window.session.move(10)),
    Command("Go", "First row", ("Home",), lambda window: window.session.to_end(first=True)),
    Command("Go", "Last row", ("End",), lambda window: window.session.to_end(first=False)),
    Command("Go"),
    Command("Go", "Next incident", ("N",), lambda window: window.session.step_incident(1)),
    Command("Go", "Previous incident", ("P",), lambda window: window.session.step_incident(-1)),
    Command("Go", "Jump to step …", ("J",), lambda window: window.header.ask_for_step()),
    Command("View", "Whole run", ("0",), lambda window: window.session.show_all()),
    Command("View", "Zoom in", ("+", "="), lambda window: window.zoom(0.5)),
    Command("View", "Zoom out", ("-",), lambda window: window.zoom(2.0)),
    Command("View"),
    Command("View", "Dark or light", ("T",), lambda window: window.toggle_theme(), needs_run=False),
    Command("Help", "All keys", ("?", "F1"), lambda window: window.show_keys(), needs_run=False),
    Command("Help", "Back", ("Esc",), lambda window: window.back(), needs_run=False),
)

MOUSE: tuple[tuple[str, str], ...] = (
    ("click", "the transition that led to a row"),
    ("drag", "move along the run; on the cursor line, scrub"),
    ("wheel", "zoom about the mouse"),
    ("double click", "the whole run"),
)
