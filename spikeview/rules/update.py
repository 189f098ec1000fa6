"""Rules on what the optimizer did with the gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recorder.schema import Mask
from spikeview.cells import Kind
from spikeview.format import label
from spikeview.rules.context import Context, Judgement, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.watch import Positions
from spikeview.rules.wording import name_rows, written

UPDATE = ("update_cosine", "update_ratio")


def ordinary_grad_abnormal_update(context: Context) -> Judgement:
    """The gradient was as ever and the update was not: its direction, its size for its rate, or the rate itself."""
    if outside := context.moved_outside():
        return Judgement(Verdict.MATCHED, "; ".join([outside[0], *_resumed(context)]), outside[1])
    rows = context.transitions
    abnormal = rows[context.out("update_ratio")[rows] | context.out("update_cosine")[rows]]
    abnormal = abnormal[~context.out("grad_norm")[abnormal]]
    large = _first_large(context)
    carried = abnormal[abnormal > large] if large is not None else abnormal[:0]
    abnormal = np.setdiff1d(abnormal, carried)
    ordinary = abnormal[~context.watch.doubtful["grad_norm"][abnormal]]
    if len(ordinary):
        return Judgement(Verdict.MATCHED, _told(context, int(ordinary[0]), ordinary), ordinary)
    if len(abnormal) and (doubt := context.doubt(("grad_norm",), int(abnormal[0]))):
        return replace(doubt, evidence=f"{doubt.evidence}, where the update was abnormal")
    jump = context.lr_jump(context.accused)
    if jump and not any(mask["grad_norm"][jump.position] for mask in (context.watch.out, context.watch.doubtful)):
        text = "; ".join([jump.text, f"{context.says('grad_norm', jump.position)} ordinary", *_resumed(context)])
        return Judgement(Verdict.MATCHED, text, np.array([jump.position]))
    if large is not None and len(carried):
        return _of_an_earlier_gradient(context, large, int(carried[0]))
    return _nothing_abnormal(context)


def _first_large(context: Context) -> int | None:
    """The first executed gradient of the incident that was not ordinary: moments keep it, and so it is in updates."""
    rows = context.extent
    large = rows[context.out("grad_norm")[rows] & context.run.values("executed")[rows].astype(np.bool_)]
    return int(large[0]) if len(large) else None


def _of_an_earlier_gradient(context: Context, large: int, update: int) -> Judgement:
    out = ", ".join(context.says(column, update) for column in UPDATE if context.out(column)[update])
    text = f"{out} at {context.row(update)} comes after a gradient that was not ordinary: "
    text += f"{context.says('grad_norm', large)} at {context.row(large)}"
    return Judgement(Verdict.RULED_OUT, text, np.array([large, update]))


def _told(context: Context, first: int, abnormal: Positions) -> str:
    run = context.run
    out = [column for column in UPDATE if context.out(column)[first]]
    known = [
        column for column in (*UPDATE, "grad_norm") if column not in out and run.kind(column)[first] == Kind.FINITE
    ]
    text = f"{', '.join(context.says(column, first) for column in out)} at {name_rows(run, abnormal)}"
    jump = context.lr_jump(first)
    ordinary = [f"{context.says(column, first)} ordinary" for column in known]
    unknown = [written(run, column, first) for column in UPDATE if context.missing(column, first)]
    return "; ".join([text, *ordinary, *unknown, *([jump.text] if jump else []), *_resumed(context)])


def _resumed(context: Context) -> list[str]:
    resume = context.resume()
    return [resume] if resume else []


def _nothing_abnormal(context: Context) -> Judgement:
    rows = context.transitions
    if len(context.perhaps):
        return cannot_tell(("executed",), f"at {name_rows(context.run, context.perhaps)}")
    if not len(rows):
        return Judgement(Verdict.RULED_OUT, f"nothing executed up to {context.row(context.first)}")
    columns = ("grad_norm", *UPDATE)
    doubtful = rows[np.logical_or.reduce([context.watch.doubtful[column][rows] for column in columns])]
    if len(doubtful) and (doubt := context.doubt(columns, int(doubtful[0]))):
        return doubt
    place = int(rows[0])
    if context.out("grad_norm")[place]:
        text = f"the gradient was not ordinary: {context.says('grad_norm', place)}"
        return Judgement(Verdict.RULED_OUT, text, np.array([place]))
    told = ", ".join(context.says(column, place) for column in UPDATE)
    return Judgement(Verdict.RULED_OUT, f"{told} at {context.row(place)}", np.array([place]))


def executed_not_moved(context: Context) -> Judgement:
    """The optimizer ran and no parameter changed, or none of those that have no gradient any more."""
    run, rows = context.run, context.transitions
    still = rows[run.recorded("moved")[rows] & ~run.values("moved")[rows]]
    if len(still):
        return Judgement(Verdict.MATCHED, _why(context, still), still)
    cut_off = context.extent[context.watch.cut_off[context.extent]]
    if len(cut_off):
        return Judgement(Verdict.MATCHED, _cut_off(context, int(cut_off[0])), cut_off)
    if len(context.perhaps):
        return cannot_tell(("executed",), f"at {name_rows(run, context.perhaps)}")
    if not len(rows):
        return Judgement(Verdict.RULED_OUT, f"nothing executed up to {name_rows(run, context.extent)}")
    unknown = rows[~run.values("moved")[rows] & ~_measured(context, rows)]
    if len(unknown):
        return cannot_tell(("moved",), f"at {name_rows(run, unknown)}")
    return Judgement(Verdict.RULED_OUT, f"parameters moved at {name_rows(run, rows)}", rows)


def _cut_off(context: Context, position: int) -> str:
    run = context.run
    told = np.flatnonzero(run.recorded("grad_none_params")[:position])
    before, now = (int(run.values("grad_none_params")[place]) for place in (told[-1], position))
    return (
        f"{label('grad_none_params')} {before} to {now} at {context.row(position)}: those stopped receiving one, "
        "and no step moves them any more; if layers were frozen there on purpose, nothing is wrong"
    )


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
