"""What goes to the clipboard: the neighbouring rows as a table, the id of the batch."""

from __future__ import annotations

import csv
import io

from PySide6.QtGui import QGuiApplication

from spikeview.format import printable
from spikeview.ui.neighbours import COLUMNS, around
from spikeview.ui.session import Session


def copy(session: Session, what: str) -> None:
    """Put the neighbours, as markdown or csv, or the batch on the clipboard, and say so."""
    text, said = copied(session, what)
    if text:
        QGuiApplication.clipboard().setText(text)
    session.told.emit(said)


def copied(session: Session, what: str) -> tuple[str, str]:
    """The text, empty where there is none, and what to say of it; `what` is markdown, csv or batch."""
    if what == "batch":
        batch = session.run.text("batch_id", session.inspected)
        return (batch, f"Copied batch {printable(batch)}.") if batch else ("", "The batch was not recorded.")
    positions = around(session.inspected, len(session.run))
    heads = [name for name, _, _ in COLUMNS]
    rows = [[read(session.view, position, False).text for _, _, read in COLUMNS] for position in positions]
    return (markdown if what == "markdown" else as_csv)(heads, rows), f"Copied {len(rows)} rows as {what}."


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines)


def as_csv(heads: list[str], rows: list[list[str]]) -> str:
    """Lines of CSV."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([heads, *rows])
    return written.getvalue()
