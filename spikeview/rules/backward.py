"""Rules on the gradient."""

from __future__ import annotations

from spikeview.analysis.signals import is_nonfinite
from spikeview.format import words
from spikeview.rules.context import Context, Judgement, Positions, cannot_tell
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import name_rows, written
from spikeview.run import Kind


def grad_nonfinite_loss_finite(context: Context) -> Judgement:
    """A finite forward whose backward holds a NaN or an infinity."""
    rows, run = context.extent, context.run
    broken = rows[context.watch.broken[rows]]
    finite = broken[run.kind("loss")[broken] == Kind.FINITE]
    if len(finite):
        return Judgement(Verdict.MATCHED, _finite_loss(context, finite), finite)
    if missing := _unknown(context):
        return missing
    if len(broken):
        first = int(broken[0])
        text = f"{written(run, 'loss', first)} at {context.row(first)} too: the forward was not finite"
        return Judgement(Verdict.RULED_OUT, text, broken)
    overflowed = rows[is_nonfinite(run.kind("grad_norm")[rows])]
    if len(overflowed):
        text = f"every gradient is finite at {name_rows(run, overflowed)}: only their norm overflowed"
        return Judgement(Verdict.RULED_OUT, text, overflowed)
    return Judgement(Verdict.RULED_OUT, f"gradients finite at {name_rows(run, rows)}", rows)


def _finite_loss(context: Context, rows: Positions) -> str:
    run, first = context.run, int(rows[0])
    text = f"{written(run, 'loss', first)} finite, gradients not, at {name_rows(run, rows)}"
    if run.recorded("grad_nonfinite_params")[first]:
        text += f"; parameters hit: {int(run.values('grad_nonfinite_params')[first])}"
        name = run.text("first_nonfinite_param", first)
        text += f", first {name}" if name else ""
    if run.recorded("loss_scale")[first]:
        text += f"; {written(run, 'loss_scale', first)}"
    return text


def _unknown(context: Context) -> Judgement | None:
    rows, run = context.extent, context.run
    unknown = {
        column: run.kind(column)[rows] == Kind.NOT_RECORDED for column in ("loss", "grad_norm", "grad_nonfinite_params")
    }
    gradient = unknown["grad_norm"] & unknown["grad_nonfinite_params"]
    missing = tuple(name for name, lacks in (("loss", unknown["loss"]), ("grad_norm", gradient)) if lacks.any())
    return cannot_tell(missing, f"at {name_rows(run, rows[unknown['loss'] | gradient])}") if missing else None


def large_norm_tiny_coef(context: Context) -> Judgement:
    """A norm far above its baseline, and what clipping made of it."""
    rows, run = context.extent, context.run
    large = rows[context.out("grad_norm")[rows] & (run.kind("grad_norm")[rows] == Kind.FINITE)]
    if len(large):
        first = int(large[0])
        text = f"{context.says('grad_norm', first)} at {name_rows(run, large)}, {_clipped(context, first)}"
        if run.recorded("top_group_share")[first]:
            share = 100 * run.values("top_group_share")[first]
            text += f"; {run.text('top_group', first)} holds {share:.0f} % of its square"
        return Judgement(Verdict.MATCHED, text + _consequence(context, first), large)
    kinds = run.kind("grad_norm")[rows]
    if (kinds == Kind.NOT_RECORDED).any():
        return cannot_tell(("grad_norm",), f"at {name_rows(run, rows[kinds == Kind.NOT_RECORDED])}")
    finite = rows[kinds == Kind.FINITE]
    if not len(finite):
        return Judgement(Verdict.RULED_OUT, f"no finite norm at {name_rows(run, rows)}", rows)
    first = int(finite[0])
    if run.text("grad_norm_source", first) == "at_step":
        text = f"the norm of {context.row(first)} was seen at the step, perhaps after clipping"
        return Judgement(Verdict.CANNOT_TELL, text, missing=("grad_norm",))
    if context.unjudged("grad_norm", first):
        return Judgement(Verdict.CANNOT_TELL, f"too few rows before {context.row(first)} for a baseline of the norm")
    return Judgement(Verdict.RULED_OUT, f"{context.says('grad_norm', first)} at {context.row(first)}", finite)


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
