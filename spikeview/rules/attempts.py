"""Rules on whether the optimizer was asked, and whether it ran."""

from __future__ import annotations

import numpy as np

from spikeview.format import words
from spikeview.rules.context import Context, Judgement, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import NAMED, name_rows


def no_attempt(context: Context) -> Judgement:
    """The loop did not ask the optimizer to step on the first bad row."""
    run, row = context.run, np.array([context.first])
    if not run.recorded("attempted")[context.first]:
        return cannot_tell(("attempted",), f"at {context.row(context.first)}")
    if run.values("attempted")[context.first]:
        return Judgement(Verdict.RULED_OUT, f"attempted at {context.row(context.first)}", row)
    reason = run.text("skip_reason", context.first)
    if reason == "accumulating":
        text = f"{context.row(context.first)} is a declared micro-step of an accumulation"
        return Judgement(Verdict.RULED_OUT, text, row)
    return Judgement(
        Verdict.MATCHED, f"no attempt at {context.row(context.first)}: {reason or 'no reason recorded'}", row
    )


def attempted_not_executed(context: Context) -> Judgement:
    """The optimizer was asked to step and the step did not run."""
    run, rows = context.run, context.extent
    skips = rows[context.watch.skips[rows]]
    if len(skips):
        reason = run.text("skip_reason", int(skips[0]))
        text = f"{name_rows(run, skips)} attempted, not executed" + (f" ({reason})" if reason else "")
        if run.recorded("loss_scale")[skips].all():
            scales = [words(run, "loss_scale", int(place)) for place in skips[:NAMED]]
            text += f"; loss scale {', '.join(scales)}{', ...' if len(skips) > NAMED else ''}"
        return Judgement(Verdict.MATCHED, text, skips)
    for column in ("attempted", "executed"):
        if not run.recorded(column)[rows].all():
            return cannot_tell((column,), f"at {name_rows(run, rows[~run.recorded(column)[rows]])}")
    return Judgement(Verdict.RULED_OUT, f"every attempt executed at {name_rows(run, rows)}", rows)
