"""The batches to feed again, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recorder.sample_ids import from_text
from spikeview.format import cell, plural, shown
from spikeview.importers.captures import ENTRY
from spikeview.report.replays import captured, captured_rows
from spikeview.rules.diagnosis import Diagnosed
from spikeview.rules.wording import row_of
from spikeview.run import Run

OCCURRENCES = 5


def feed_again(diagnosed: Diagnosed, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """`batches`: those of the accused transition and of the first bad row, with where else each was fed.

    `how` is what to do with them, in order.
    """
    first = diagnosed.incident.first_bad.position
    places = sorted({first} if diagnosed.transition is None else {first, diagnosed.transition})
    rows = captured_rows(diagnosed.view.run)
    batches = [_batch(diagnosed, place, rows) for place in places]
    return {"batches": batches, "how": _how(diagnosed, checkpoint, batches)}


def _batch(diagnosed: Diagnosed, place: int, captured: list[int]) -> dict[str, Any]:
    run, row = diagnosed.view.run, row_of(diagnosed.view.run, place)
    roles = [
        text
        for text, here in (
            ("transition", diagnosed.transition),
            ("first bad row", diagnosed.incident.first_bad.position),
        )
        if here == place
    ]
    batch = run.text("batch_id", place)
    others = [] if batch is None else [at for at in _fed_at(run, batch) if at != place]
    nearest = sorted(others, key=lambda at: abs(at - place))[:OCCURRENCES]
    return {
        "batch": batch,
        "row": row,
        "step": cell(run, "step", place)["text"],
        "role": " and ".join(roles),
        "also_at": [{"row": row_of(run, at), "loss": cell(run, "loss", at)["text"]} for at in sorted(nearest)],
        "times_fed": len(others) + 1 if batch is not None else None,
        "captured": row in captured,
    }


def _fed_at(run: Run, batch: str) -> list[int]:
    """Every position of a batch; not kept, as `Run.equals` would: each batch is asked for once."""
    same = pc.equal(run.table["batch_id"], pa.scalar(batch, pa.string())).fill_null(False)
    return np.flatnonzero(same.to_numpy()).tolist()


def _how(diagnosed: Diagnosed, checkpoint: dict[str, Any], batches: list[dict[str, Any]]) -> list[str]:
    first, last = row_of(diagnosed.view.run, diagnosed.incident.first_bad.position), batches[-1]
    named = "the batch" if last["batch"] is None else f"batch {shown(last['batch'])}"
    steps = [
        f"Row {each['row']} was captured with its state: {each['command']}, where {ENTRY} returns your model and loss."
        for each in captured(diagnosed)
        if each["command"] and not each["summary"]
    ]
    if last["batch"] is None:
        steps.append(
            "Batch ids were not recorded: find the batches from the sampler's seed and the row, and pass batch_id= to "
            "recorder.transition() from now on."
        )
    elif from_text(last["batch"]) is not None:
        steps.append(
            "recorder.data.batch(loader, batch_id) makes a batch again from its id (loader, or the dataset with its "
            f"collate_fn); `spikeview batches RUN --row {last['row']}` lists its samples."
        )
    if checkpoint["row"] is None:
        steps.append(f"Restore a state from before row {batches[0]['row']}; none is known to be good.")
    else:
        between = first - checkpoint["row"] - 1
        rows = f", then feed the {plural(between, 'row')} up to row {first - 1} in their order" if between else ""
        steps.append(
            f"Restore {shown(checkpoint['name'] or 'the checkpoint')} with optimizer, scheduler, scaler and random "
            f"state{rows}."
        )
    steps.append(_question(diagnosed, named))
    return steps


def _question(diagnosed: Diagnosed, batch: str) -> str:
    """What to feed it to, so that the answer tells two explanations apart."""
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    if first.phase not in ("forward", "backward"):
        return (
            f"Step on {batch} from there twice, once as it was and once with a fresh optimizer state: an update that "
            "is bad only the first time accuses that state."
        )
    what = "loss" if first.phase == "forward" else "gradient"
    precision = run.text("precision", first.position)
    full = precision in ("fp32", "fp64") and not run.recorded("loss_scale")[first.position]
    lower = "" if full else " Then again in float32: what stays finite there was lost to the lower precision."
    return (
        f"Evaluate {batch} without stepping, and three ordinary batches beside it, with the parameters from before and "
        f"from after the transition: a {what} that is bad with both accuses the batch, bad only with those from after "
        f"the transition.{lower}"
    )
