"""The check on a resume: what did not come back with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from spikeview.format import plural
from spikeview.rules.finding import Outcome
from spikeview.rules.restart import Resume, same_step, traces
from spikeview.rules.seen import Seen
from spikeview.rules.steps import segments
from spikeview.rules.verdict import Answer, untold
from spikeview.rules.wording import row_of

ALWAYS = ("model", "optimizer")
BESIDE = ("rng", "sampler")


def resume_incomplete(seen: Seen) -> Answer:
    """After a resume something is not as it was: as measured, by the loop's own word, or by what the rows show.

    The rows show a scale, a rate or batches that start over, and an optimizer without its history: its first update
    follows the gradient more closely, and is larger for its rate, than any of the updates before.
    """
    run = seen.run
    starts = np.flatnonzero(np.diff(segments(run)) > 0) + 1
    if not len(starts):
        return Answer(Outcome.NOT_APPLICABLE, "no resume") if "segment" in run else untold("no segments", "segment")
    resumes = [Resume(run, start, same_step(run, start)) for start in starts.tolist()]
    lost = [(resume, what) for resume in resumes for what in _lost(resume)]
    rows = np.array(sorted({resume.start for resume, _ in lost}), dtype=np.int64)
    if lost:
        first = lost[0][0].start
        text = "; ".join(what for resume, what in lost if resume.start == first)
        more = f"; and after {plural(len(rows) - 1, 'further resume')}" if len(rows) > 1 else ""
        return Answer(Outcome.FAILED, f"resumed at row {row_of(run, first)}: {text}{more}", rows)
    silent = [(resume, parts) for resume in resumes if (parts := _unknown(resume))]
    if silent:
        resume, parts = silent[0]
        row, whole = row_of(run, resume.start), len(parts) == len(_expected(resume))
        what = "what came back" if whole else f"whether {' and '.join(parts)} came back"
        return untold(f"nothing in the rows starts over, but {what} at row {row} was not told", "restored")
    return Answer(Outcome.PASSED, f"all came back after {plural(len(resumes), 'resume')}")


def _lost(resume: Resume) -> Iterator[str]:
    """What did not come back, in words."""
    lost, restored = resume.lost(), resume.restored()
    if lost:
        yield f"not as it was at the checkpoint: {', '.join(f'{part} ({what})' for part, what in lost.items())}"
    if restored is not None:
        measured = [*lost, *resume.came_back()]
        absent = [name for name in _expected(resume) if name not in restored and name not in measured]
        if absent:
            yield f"not restored: {', '.join(absent)}"
    yield from traces(resume)


def _unknown(resume: Resume) -> list[str]:
    """The parts that were neither measured nor told of."""
    if resume.restored() is not None:
        return []
    return [part for part in _expected(resume) if part not in resume.came_back()]


def _expected(resume: Resume) -> list[str]:
    """The parts of a loop's state that this run has; accumulated gradients only where a step was half done."""
    run = resume.run
    optimizers = run.manifest.get("optimizers")
    entries = (
        [each for each in optimizers.values() if isinstance(each, Mapping)] if isinstance(optimizers, Mapping) else []
    )
    has = {
        "scheduler": any(each.get("scheduler") for each in entries) or run.recorded("scheduled").any(),
        "scaler": run.recorded("loss_scale").any(),
        "accumulation": run.equals("skip_reason", "accumulating")[resume.before],
    }
    return [*ALWAYS, *(name for name, there in has.items() if there), *BESIDE]
