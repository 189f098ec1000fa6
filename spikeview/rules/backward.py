"""Rules on the gradient."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.signals import is_nonfinite
from spikeview.cells import Kind
from spikeview.format import words
from spikeview.meaning import hides_nonfinite
from spikeview.rules.context import Context, Judgement, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.watch import Positions
from spikeview.rules.wording import group_name, name_rows, written
from spikeview.run import Run


def grad_nonfinite_loss_finite(context: Context) -> Judgement:
    """A finite forward whose backward holds a NaN or an infinity."""
    rows, run = context.extent, context.run
    broken = rows[context.watch.broken[rows]]
    finite = broken[(run.kind("loss")[broken] == Kind.FINITE) & ~context.watch.masked[broken]]
    hides = [hides_nonfinite(run, "loss", int(place)) for place in finite]
    hidden = finite[hides] if len(finite) else finite
    finite = np.setdiff1d(finite, hidden)
    carried = {int(place): source for place in finite if (source := _carried(run, int(place))) is not None}
    finite = finite[[int(place) not in carried for place in finite]]
    if len(finite):
        return Judgement(Verdict.MATCHED, _finite_loss(context, finite), finite)
    if missing := _unknown(context):
        return missing
    if len(hidden):
        text = f"{written(run, 'loss', int(hidden[0]))} at {context.row(int(hidden[0]))} leaves NaN and Inf out"
        return Judgement(Verdict.CANNOT_TELL, f"{text}: whether every loss in it was finite is not known", hidden)
    if carried:
        place, source = next(iter(carried.items()))
        text = (
            f"the gradient at {context.row(place)} carries the {written(run, 'loss', source)} of {context.row(source)}"
        )
        return Judgement(Verdict.RULED_OUT, f"{text}, a micro-step of the same step", np.array(list(carried)))
    if len(broken):
        first = int(broken[0])
        text = f"{written(run, 'loss', first)} at {context.row(first)} too: the forward was not finite"
        return Judgement(Verdict.RULED_OUT, text, broken)
    overflowed = rows[is_nonfinite(run.kind("grad_norm")[rows])]
    if len(overflowed):
        norm = "overflowed" if context.watch.overflowed[overflowed[0]] else "is not finite"
        text = f"every gradient is finite at {name_rows(run, overflowed)}: only their norm {norm}"
        return Judgement(Verdict.RULED_OUT, text, overflowed)
    return Judgement(Verdict.RULED_OUT, f"gradients finite at {name_rows(run, rows)}", rows)


def _carried(run: Run, position: int) -> int | None:
    """The micro-step with a non-finite loss whose gradient was accumulated into this row's, if there is one."""
    micro = run.equals("skip_reason", "accumulating")
    while position > 0 and micro[position - 1]:
        position -= 1
        if is_nonfinite(run.kind("loss")[position : position + 1])[0]:
            return position
    return None


def _finite_loss(context: Context, rows: Positions) -> str:
    run, first = context.run, int(rows[0])
    text = f"{written(run, 'loss', first)} finite, gradients not, at {name_rows(run, rows)}"
    if run.recorded("grad_nonfinite_params")[first]:
        text += f"; parameters hit: {int(run.values('grad_nonfinite_params')[first])}"
        name = run.text("first_nonfinite_param", first)
        text += f", first {name}" if name else ""
    if run.recorded("loss_scale")[first]:
        text += f"; {written(run, 'loss_scale', first)}"
    if is_nonfinite(run.kind("input_absmax")[first : first + 1])[0]:
        text += f"; {written(run, 'input_absmax', first)}"
    return text


def _unknown(context: Context) -> Judgement | None:
    rows, run = context.extent, context.run
    loss, gradient = run.kind("loss")[rows] == Kind.NOT_RECORDED, context.watch.unsure[rows]
    untold = gradient & (run.kind("grad_norm")[rows] == Kind.NOT_RECORDED)
    missing = tuple(name for name, lacks in (("loss", loss), ("grad_norm", untold)) if lacks.any())
    if missing:
        return cannot_tell(missing, f"at {name_rows(run, rows[loss | untold])}")
    return _overflow_or_not(context, rows[gradient]) if gradient.any() else None


def _overflow_or_not(context: Context, rows: Positions) -> Judgement:
    text = f"at {name_rows(context.run, rows)}, and a norm of Inf may be an overflow over finite gradients"
    return cannot_tell(("grad_nonfinite_params",), text)


def large_norm_tiny_coef(context: Context) -> Judgement:
    """A norm far above its baseline, or one that overflowed, and what clipping made of it."""
    rows, run = context.extent, context.run
    kinds = run.kind("grad_norm")[rows]
    finite = rows[kinds == Kind.FINITE]
    large = np.union1d(finite[context.out("grad_norm")[finite]], rows[context.watch.overflowed[rows]])
    if len(large):
        return Judgement(Verdict.MATCHED, _large(context, large), large)
    if (kinds == Kind.NOT_RECORDED).any():
        return cannot_tell(("grad_norm",), f"at {name_rows(run, rows[kinds == Kind.NOT_RECORDED])}")
    if context.watch.unsure[rows].any():
        return _overflow_or_not(context, rows[context.watch.unsure[rows]])
    if not len(finite):
        return Judgement(Verdict.RULED_OUT, f"no finite norm at {name_rows(run, rows)}", rows)
    doubtful = finite[context.watch.doubtful["grad_norm"][finite]]
    if len(doubtful) and (doubt := context.doubt(("grad_norm",), int(doubtful[0]))):
        return doubt
    first = int(finite[0])
    return Judgement(Verdict.RULED_OUT, f"{context.says('grad_norm', first)} at {context.row(first)}", finite)


def _large(context: Context, rows: Positions) -> str:
    run, first = context.run, int(rows[0])
    overflowed = ", the norm overflowed" if context.watch.overflowed[first] else ""
    text = f"{context.says('grad_norm', first)} at {name_rows(run, rows)}{overflowed}, {_clipped(context, first)}"
    if run.recorded("top_group_share")[first]:
        share = 100 * run.values("top_group_share")[first]
        text += f"; {group_name(run.text('top_group', first) or '')} holds {share:.0f} % of its square"
    return text + _consequence(context, first)


def _clipped(context: Context, position: int) -> str:
    run = context.run
    if run.recorded("clip_coef")[position]:
        return written(run, "clip_coef", position)
    return "not clipped" if "clip_coef" in run else "clip coefficient not recorded"


def _consequence(context: Context, position: int) -> str:
    """The row's own update, where it left its baseline and the next loss did too."""
    following = position + 1
    explained = (
        following < len(context.run) and context.out("update_ratio")[position] and context.out("loss")[following]
    )
    if not explained:
        return ""
    loss = words(context.run, "loss", following)
    update = context.says("update_ratio", position)
    return f". This row's own update, {update}, explains the loss of {context.row(following)} ({loss})"
