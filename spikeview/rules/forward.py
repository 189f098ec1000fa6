"""Rules on the loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spikeview.cells import Kind
from spikeview.format import words
from spikeview.meaning import onset
from spikeview.rules.context import Context, Judgement, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import name_rows, written

TRANSITION = ("grad_norm", "update_ratio", "update_cosine")


def loss_nonfinite(context: Context) -> Judgement:
    """The loss itself is NaN or infinite on a row of the incident; said with what the transition before was like."""
    rows, run = context.extent, context.run
    bad = rows[context.watch.lost[rows]]
    if len(bad):
        first = int(bad[0])
        text = f"{written(run, 'loss', first)} at {name_rows(run, bad)}"
        if context.watch.masked[first]:
            text += f", where the log left a NaN or Inf out: {written(run, 'grad_norm', first)}"
        for column in ("input_absmax", "activation_absmax"):
            if run.recorded(column)[first]:
                text += f", {written(run, column, first)}"
        return Judgement(Verdict.MATCHED, f"{text}; {_transition_before(context, first).evidence}", bad)
    return _loss_not_recorded(context) or Judgement(Verdict.RULED_OUT, f"loss finite at {name_rows(run, rows)}", rows)


def loss_spike_clean_transition(context: Context) -> Judgement:
    """The loss left, and the transition that made its parameters was ordinary in all that is known to tell.

    A loss that is NaN or infinite from the start is no spike: it would match here on the same row as `loss_nonfinite`
    and send the reader to the data instead of the arithmetic. What a clean transition before it adds, that rule says.
    """
    run, rows = context.run, context.extent
    spiked = rows[context.out("loss")[rows]]
    if not len(spiked):
        return _loss_not_recorded(context) or _no_spike(context)
    spike = int(spiked[0])
    if context.watch.lost[spike]:
        text = f'{written(run, "loss", spike)} at {context.row(spike)} is no spike: see "Loss non-finite"'
        return Judgement(Verdict.RULED_OUT, text, spiked[:1])
    if context.watch.drifting[context.first : spike + 1].any():
        return _drift(context)
    before = _transition_before(context, spike)
    if before.verdict is not Verdict.MATCHED:
        return before
    loss = f"{context.says('loss', spike)} at {context.row(spike)}"
    return Judgement(Verdict.MATCHED, f"{loss}, {before.evidence}", np.union1d(before.positions, [spike]))


def _loss_not_recorded(context: Context) -> Judgement | None:
    rows, recorded = context.extent, context.run.recorded("loss")
    if recorded[rows].all():
        return None
    return cannot_tell(("loss",), f"at {name_rows(context.run, rows[~recorded[rows]])}")


def _no_spike(context: Context) -> Judgement:
    if context.watch.drifting[context.extent].any():
        return _drift(context)
    if doubt := context.doubt(("loss",), context.first):
        return doubt
    text = f"the loss kept to its baseline: {context.says('loss', context.first)}"
    return Judgement(Verdict.RULED_OUT, text, context.extent)


def _drift(context: Context) -> Judgement:
    rows = context.extent[context.watch.drifting[context.extent]]
    finite = rows[context.run.kind("loss")[rows] == Kind.FINITE]
    both = np.array([rows[0], finite[np.argmax(context.run.values("loss")[finite])]])
    begun, worst = (f"{words(context.run, 'loss', int(place))} at {context.row(int(place))}" for place in both)
    text = f"the loss rose slowly, from {begun} to {worst}: no single batch or transition shows why"
    rise = context.lr_rise(int(both[1]))
    return Judgement(Verdict.CANNOT_TELL, f"{text}; {rise}" if rise else text, both)


def _transition_before(context: Context, position: int) -> Judgement:
    """What the last executed transition before a loss was like: matched where all that is known of it is ordinary."""
    run, perhaps = context.run, context.watch.perhaps_before(position)
    if steps := onset(run, "loss", position):
        text = f"the loss left between step {steps[0] - 1} and {steps[1]}, and the steps between are not in the log"
        return Judgement(Verdict.CANNOT_TELL, text, np.array([position]))
    if len(perhaps):
        return cannot_tell(("executed",), f"at {name_rows(run, perhaps)}, before {context.row(position)}")
    before = context.watch.executed_before(position)
    if before is None:
        return Judgement(Verdict.MATCHED, "before any transition executed")
    both = np.array([before, position])
    if run.recorded("moved")[before] and not run.values("moved")[before]:
        return Judgement(Verdict.RULED_OUT, f"the transition of {context.row(before)} moved nothing", both)
    if position == context.first and (outside := context.moved_outside()):
        return Judgement(Verdict.RULED_OUT, outside[0], outside[1])
    if abnormal := _abnormal_before(context, before, position):
        return abnormal
    if doubt := context.doubt(TRANSITION, before):
        where = f"{doubt.evidence}, the transition before {context.row(position)}"
        return replace(doubt, evidence=where, positions=both)
    if "segment" in run and run.values("segment")[before] != run.values("segment")[position]:
        text = f"a resume lies between {context.row(before)} and {context.row(position)}"
        return Judgement(Verdict.CANNOT_TELL, text, both)
    told = ", ".join(context.says(column, before) for column in TRANSITION if run.kind(column)[before] == Kind.FINITE)
    ordinary = f"after an ordinary transition at {context.row(before)}: {told}"
    if jump := context.lr_jump(before):
        return Judgement(Verdict.CANNOT_TELL, f"{ordinary}; but {jump.text}", both)
    if rise := context.lr_rise(before):
        return Judgement(Verdict.CANNOT_TELL, f"{ordinary}; but {rise}", both)
    return Judgement(Verdict.MATCHED, ordinary, both)


def _abnormal_before(context: Context, before: int, position: int) -> Judgement | None:
    """What was abnormal in the transition before a loss, or in one of the incident's own that came before it."""
    earlier = np.arange(min(context.first, before), position)
    earlier = earlier[context.run.values("executed")[earlier]]
    for column in TRANSITION:
        out = earlier[context.out(column)[earlier]]
        if len(out):
            where = int(out[-1])
            text = f"the transition of {context.row(where)} was abnormal: {context.says(column, where)}"
            return Judgement(Verdict.RULED_OUT, text, np.array([where, position]))
    jump = context.lr_jump(before)
    if jump is None or jump.ago:
        return None
    text = f"the transition before was not ordinary: {jump.text}"
    return Judgement(Verdict.RULED_OUT, text, np.array([before, position]))
