"""Rules on what the optimizer did with the gradient."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.rules.context import Context, Judgement, Positions, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import name_rows, written
from spikeview.run import Kind

UPDATE = ("update_cosine", "update_ratio")


def ordinary_grad_abnormal_update(context: Context) -> Judgement:
    """The gradient was as ever and the update was not: its direction, its size for its rate, or the rate itself."""
    rows = context.transitions
    out = context.out("update_ratio")[rows] | context.out("update_cosine")[rows]
    abnormal = rows[out & ~context.out("grad_norm")[rows]]
    if len(abnormal):
        first = int(abnormal[0])
        if context.missing("grad_norm", first):
            return cannot_tell(("grad_norm",), f"at {context.row(first)}, where the update was abnormal")
        return Judgement(Verdict.MATCHED, _told(context, first, abnormal), abnormal)
    jump = context.lr_jump()
    if jump and not context.out("grad_norm")[jump[0]]:
        place = jump[0]
        if not context.missing("grad_norm", place):
            text = "; ".join([jump[1], f"{context.says('grad_norm', place)} ordinary", *_resumed(context)])
            return Judgement(Verdict.MATCHED, text, np.array([place]))
    return _nothing_abnormal(context)


def _told(context: Context, first: int, abnormal: Positions) -> str:
    run = context.run
    out = [column for column in UPDATE if context.out(column)[first]]
    known = [
        column for column in (*UPDATE, "grad_norm") if column not in out and run.kind(column)[first] == Kind.FINITE
    ]
    text = f"{', '.join(context.says(column, first) for column in out)} at {name_rows(run, abnormal)}"
    jump = context.lr_jump()
    ordinary = [f"{context.says(column, first)} ordinary" for column in known]
    unknown = [written(run, column, first) for column in UPDATE if context.missing(column, first)]
    return "; ".join([text, *ordinary, *unknown, *([jump[1]] if jump else []), *_resumed(context)])


def _resumed(context: Context) -> list[str]:
    resume = context.resume()
    return [resume] if resume else []


def _nothing_abnormal(context: Context) -> Judgement:
    if context.accused is None or not len(context.transitions):
        if context.accused is None and not context.run.recorded("executed")[: context.first + 1].all():
            return cannot_tell(("executed",), f"up to {context.row(context.first)}")
        return Judgement(Verdict.RULED_OUT, f"nothing executed up to {context.row(context.first)}")
    place = int(context.transitions[0])
    columns = ("grad_norm", *UPDATE)
    if missing := tuple(column for column in columns if context.missing(column, place)):
        return cannot_tell(missing, f"at {context.row(place)}")
    if any(context.unjudged(column, place) for column in columns):
        return Judgement(Verdict.CANNOT_TELL, f"too few rows before {context.row(place)} for a baseline")
    if context.out("grad_norm")[place]:
        return Judgement(
            Verdict.RULED_OUT, f"the gradient was not ordinary: {context.says('grad_norm', place)}", np.array([place])
        )
    told = ", ".join(context.says(column, place) for column in UPDATE)
    return Judgement(Verdict.RULED_OUT, f"{told} at {context.row(place)}", np.array([place]))


def executed_not_moved(context: Context) -> Judgement:
    """The optimizer ran and no parameter changed."""
    run, rows = context.run, context.transitions
    still = rows[run.recorded("moved")[rows] & ~run.values("moved")[rows]]
    if len(still):
        return Judgement(Verdict.MATCHED, _why(context, still), still)
    if not len(rows):
        if not run.recorded("executed")[context.extent].all():
            return cannot_tell(("executed",), f"at {name_rows(run, context.extent)}")
        return Judgement(Verdict.RULED_OUT, f"nothing executed up to {name_rows(run, context.extent)}")
    unknown = rows[~run.values("moved")[rows] & ~_measured(context, rows)]
    if len(unknown):
        return cannot_tell(("moved",), f"at {name_rows(run, unknown)}")
    return Judgement(Verdict.RULED_OUT, f"parameters moved at {name_rows(run, rows)}", rows)


def _measured(context: Context, rows: Positions) -> Mask:
    """Where an update larger than zero shows that something moved, though `moved` was not recorded."""
    norm, ratio = context.run.values("update_norm")[rows], context.run.values("update_ratio")[rows]
    with np.errstate(invalid="ignore"):
        return np.logical_or(norm > 0, ratio > 0)


def _why(context: Context, still: Positions) -> str:
    run, first = context.run, int(still[0])
    text = f"nothing moved at {name_rows(run, still)}"
    if run.recorded("lr")[first]:
        text += f"; {written(run, 'lr', first)}"
    if run.recorded("grad_none_params")[first]:
        text += f"; {written(run, 'grad_none_params', first)}"
    if run.text("precision", first):
        text += f"; {run.text('precision', first)}"
    return text
