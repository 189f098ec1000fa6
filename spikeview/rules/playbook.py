"""The next step after a finding: what to try that could prove it wrong, with the rows and batches of this run."""

from __future__ import annotations

from bisect import bisect_left

from spikeview.format import shown
from spikeview.rules.context import Context
from spikeview.rules.wording import row_of
from spikeview.run import Run


def next_step(template: str, context: Context) -> str:
    """The template with the names in braces filled in, such as `{row}` and `{batch}`."""
    return template.format_map(_names(context))


def _names(context: Context) -> dict[str, str]:
    run, first = context.run, context.first
    batch, precision = run.text("batch_id", first), run.text("precision", first)
    group = run.text("top_group", first)
    row = context.row(first)
    before = f"a state from before {row}" if context.before is None else context.row(context.before)
    return {
        "row": row,
        "batch": f"the batch of {row}" if batch is None else f"batch {shown(batch)}",
        "before": before,
        "accused": row if context.accused is None else context.row(context.accused),
        "wider": "fp64" if precision == "fp32" else "fp32, without autocast",
        "checkpoint": _capture(context) or _checkpoint(context) or f"a checkpoint from before {row}",
        "group": "one group" if group is None else shown(group),
        "precision": "the lower precision" if precision in (None, "fp64") else shown(str(precision)),
    }


def _capture(context: Context) -> str | None:
    """A capture of the first bad row: the very state, and the batch with it."""
    run, row = context.run, row_of(context.run, context.first)
    commands = run.once("commands", lambda: {each.row: each.command for each in reversed(run.captures)})
    return None if row not in commands else f"the capture of row {row} (`{commands[row]}` does it)"


def _checkpoint(context: Context) -> str | None:
    """The last checkpoint that was saved before the first bad row."""
    rows, names = context.run.once("checkpoints", lambda: _checkpoints(context.run))
    at = bisect_left(rows, row_of(context.run, context.first))
    return f"checkpoint {shown(names[at - 1])}" if at else None


def _checkpoints(run: Run) -> tuple[list[int], list[str]]:
    """The rows of checkpoints, rising, and their names, without those that a later one of the same row or before hides.

    Where a run went back, the checkpoints that it wrote before are behind it.
    """
    rows: list[int] = []
    names: list[str] = []
    for event in run.events:
        row = event.get("row")
        if event.get("kind") == "checkpoint" and "name" in event and isinstance(row, int):
            while rows and rows[-1] >= row:
                rows.pop(), names.pop()
            rows.append(row)
            names.append(str(event["name"]))
    return rows, names
