"""Everything the window can do: where it stands in the menus, its keys, and what it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spikeview.ui.copying import copy

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
    Command("File", "Open a run …", ("O", "Ctrl+O"), lambda window: window.dialogs.choose_run(), needs_run=False),
    Command("File", "Open a log …", ("Ctrl+Shift+O",), lambda window: window.dialogs.choose_log(), needs_run=False),
    Command(
        "File",
        "Back to the list of runs",
        ("Backspace",),
        lambda window: window.session.opener.back_to_list(),
        needs_run=False,
    ),
    Command("File", "Columns of the log …", ("L",), lambda window: window.dialogs.choose_columns(), needs_run=False),
    Command("File", "Export the report …", ("E", "Ctrl+E"), lambda window: window.dialogs.choose_report()),
    Command("File"),
    Command("File", "Quit", ("Ctrl+Q",), lambda window: window.quit(), needs_run=False),
    Command("Edit", "Copy the neighbours as Markdown", ("Ctrl+C",), lambda window: copy(window.session, "markdown")),
    Command("Edit", "Copy the neighbours as CSV", ("Ctrl+Shift+C",), lambda window: copy(window.session, "csv")),
    Command("Edit", "Copy the batch", ("B",), lambda window: copy(window.session, "batch")),
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
    Command("Go", "Find a sample …", ("S",), lambda window: window.dialogs.find_sample()),
    Command("Go"),
    Command("Go", "Follow the live run", ("F",), lambda window: window.session.follow.toggle()),
    Command("View", "Whole run", ("0",), lambda window: window.session.show_all()),
    Command("View", "Zoom in", ("+", "="), lambda window: window.zoom(0.5)),
    Command("View", "Zoom out", ("-",), lambda window: window.zoom(2.0)),
    Command("View", "Zoom back", ("Alt+Left", "Ctrl+Z"), lambda window: window.session.go_back(-1)),
    Command("View", "Zoom forward", ("Alt+Right", "Ctrl+Shift+Z"), lambda window: window.session.go_back(1)),
    Command("View"),
    Command("View", "Dark or light", ("T",), lambda window: window.toggle_theme(), needs_run=False),
    Command("Panels", "Move the panel up", ("Ctrl+Up",), lambda window: window.plots.move_panel(-1)),
    Command("Panels", "Move the panel down", ("Ctrl+Down",), lambda window: window.plots.move_panel(1)),
    Command("Panels", "Hide the panel", ("Ctrl+H",), lambda window: window.plots.hide_panel()),
    Command("Panels", "As at first", ("Ctrl+0",), lambda window: window.plots.reset()),
    Command("Panels"),
    Command("Compare", "Compare with …", ("C",), lambda window: window.dialogs.choose_other()),
    Command("Compare", "By step", ("Alt+S",), lambda window: window.session.comparison.use_clock("step")),
    Command("Compare", "By executed steps", ("Alt+E",), lambda window: window.session.comparison.use_clock("executed")),
    Command("Compare", "Stop comparing", ("Ctrl+W",), lambda window: window.session.comparison.clear()),
    Command("Help", "All keys", ("?", "F1"), lambda window: window.show_keys(), needs_run=False),
    Command("Help", "Back", ("Esc",), lambda window: window.back(), needs_run=False),
)

# of the panels in the order of the menu
PANEL_KEYS = (*(str(digit) for digit in range(1, 10)), *(f"Alt+{digit}" for digit in range(1, 10)))

MOUSE: tuple[tuple[str, str], ...] = (
    ("click", "the transition that led to a row"),
    ("drag", "zoom to what it spans; on the cursor line, scrub"),
    ("Shift+drag", "move along the run; so does the middle button"),
    ("drag of a panel's head", "move the panel; Esc or a right click gives it up"),
    ("wheel", "zoom about the mouse; on a panel's head, scroll"),
    ("double click", "the whole run"),
    ("right click", "move or hide a panel"),
)
