"""Checks on mixed precision: a NaN that the scaler does not see, and an autocast that does not reach the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.format import plural, shown
from spikeview.rules.finding import Outcome
from spikeview.rules.scale import no_scaler
from spikeview.rules.verdict import Answer, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Run

HALF = ("fp16", "bf16")
_ABOUT = re.compile(r"precision|dtype|autocast|(^|_)amp", re.IGNORECASE)
_ASKED = (
    ("bf16", re.compile(r"bf16|bfloat16", re.IGNORECASE)),
    ("fp16", re.compile(r"fp16|float16|half|16-mixed|^16$")),
)


def nan_after_unscale(run: Run) -> Answer:
    """A step executed under a scaler although its gradient or its update was not finite.

    A scaler looks at the gradients when it unscales them, and skips the step for what it finds then. So what executed
    all the same was made later, by the unscaling itself, or in a step that did not go through the scaler.
    """
    scaled = run.recorded("loss_scale")
    if not scaled.any():
        return no_scaler(run)
    if not run.recorded("executed").any():
        return unknown("executed")
    stepped = scaled & run.values("executed").astype(np.bool_)
    gradient = nonfinite_gradient(run)
    update = nonfinite(run, "update_norm") | nonfinite(run, "update_ratio")
    bad = np.flatnonzero(stepped & (gradient | update))
    if len(bad):
        what = "a gradient" if gradient[bad[0]] else "finite gradients and an update"
        text = f"executed with {what} that is not finite at {name_rows(run, bad)}"
        return Answer(Outcome.FAILED, f"{text}: made after the scaler had looked, or past it", bad)
    watched = run.recorded("update_norm") | run.recorded("update_ratio")
    if not (stepped & (run.recorded("grad_nonfinite_params") | run.recorded("grad_norm") | watched)).any():
        return unknown("grad_nonfinite_params", "update_norm") if stepped.any() else no_step()
    if not (stepped & watched).any():
        return untold("gradients finite where they were measured; what became of them was not", "update_norm")
    return Answer(Outcome.PASSED, f"finite on {plural(int(np.count_nonzero(stepped)), 'executed step')} under a scaler")


def no_step() -> Answer:
    """The answer where nothing executed."""
    return Answer(Outcome.NOT_APPLICABLE, "nothing executed")


def autocast_device_mismatch(run: Run) -> Answer:
    """Half precision was asked for, and the forward ran in none: autocast is on for another device, or off.

    What was asked is read from the settings that the loop gave the recorder. A loss scale alone asks for nothing.
    """
    if not run.recorded("precision").any():
        return unknown("precision")
    ran = [text for text in run.table["precision"].unique().to_pylist() if text is not None]
    asked = sorted(set(_asked(run.manifest.get("config"))))
    device = shown(str(run.manifest.get("device", "a device that was not recorded")))
    if any(each in HALF for each in ran):
        return Answer(Outcome.PASSED, f"the forward ran in {' and '.join(map(shown, ran))} on {device}")
    if asked:
        rows = np.flatnonzero(run.recorded("precision"))
        text = f"the settings ask for {' and '.join(asked)}, and the forward ran in {' and '.join(map(shown, ran))}"
        return Answer(Outcome.FAILED, f"{text} on {device}: autocast is off there, or on for another device", rows)
    if run.recorded("loss_scale").any():
        text = f"a loss scale, and a forward in {' and '.join(map(shown, ran))} on {device}"
        return untold(f"{text}: no autocast was meant, or it is on for another device", "config")
    return Answer(Outcome.NOT_APPLICABLE, f"no half precision asked for: {' and '.join(map(shown, ran))}")


def _asked(config: Any, about: bool = False) -> Iterator[str]:
    """The half precisions that a user's settings name: `{"precision": "bf16"}`, `{"fp16": true}`."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if value is True:
                yield from (name for name, pattern in _ASKED if pattern.fullmatch(str(key)))
            yield from _asked(value, about or bool(_ABOUT.search(str(key))))
    elif about and isinstance(config, (str, int)) and not isinstance(config, bool):
        yield from [name for name, pattern in _ASKED if pattern.search(str(config))][:1]
