"""The check on who makes up the gradient's norm."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.rules.finding import Outcome
from spikeview.rules.steps import optimizer_settings
from spikeview.rules.verdict import Answer, too_few, unknown, untold
from spikeview.rules.wording import group_name
from spikeview.run import Run

DOMINATES = 0.9
WHOLLY = 0.98
USUALLY = 0.5
ALWAYS = 0.95
FEW = 20
LONG = 64


def group_dominates_norm(run: Run) -> Answer:
    """One group that holds less than half of the parameters makes up more than 90 % of the squared norm, usually.

    Or nearly all of it, on an eighth of the rows one after the other.
    """
    rows = np.flatnonzero(run.recorded("top_group_share") & run.recorded("top_group"))
    if not len(rows):
        told = "top_group_share" in run and run.recorded("grad_norm").any()
        return Answer(Outcome.NOT_APPLICABLE, "one group") if told else unknown("top_group_share")
    large = run.recorded("top_group_share") & (run.values("top_group_share") > DOMINATES)
    groups = [name for name in run.table["top_group"].unique().to_pylist() if name is not None]
    held = {name: np.flatnonzero(large & run.equals("top_group", name)) for name in groups}
    group, own = max(held.items(), key=lambda each: len(each[1]))
    over = f"over {100 * DOMINATES:.0f} % of the squared norm"
    text = f"{group_name(group)} holds {over} on {len(own):,} of {len(rows):,} rows"
    whole = np.isin(rows, own) & (run.values("top_group_share")[rows] > WHOLLY)
    if len(own) <= USUALLY * len(rows) and not _for_long(whole):
        return Answer(Outcome.PASSED, text if len(own) else f"no group holds over {100 * DOMINATES:.0f} % of it")
    if len(rows) < FEW:
        return too_few(len(rows), "rows with a norm by groups", FEW)
    part = _part_of_parameters(run, group)
    if part is None:
        return untold(f"{text}; how many of the parameters it holds was not recorded", "layers")
    text = f"{text}, and {100 * part:.0f} % of the parameters"
    return Answer(Outcome.PASSED, text) if part >= USUALLY else Answer(Outcome.FAILED, text, own)


def _for_long(mask: Mask) -> bool:
    """Whether an eighth of the rows, LONG at least, hold nearly nothing but True one after the other."""
    width = max(LONG, len(mask) // 8)
    total = np.concatenate([[0], np.cumsum(mask)])
    return bool(len(mask) >= width and (total[width:] - total[:-width]).max() >= ALWAYS * width)


def _part_of_parameters(run: Run, group: str) -> float | None:
    """The group's part of all parameters: by the manifest's groups, else of the tensors in the layers table."""
    groups = optimizer_settings(run).get("groups")
    if isinstance(groups, list) and len(groups) > 1:
        sizes: dict[str, int] = {}
        for index, each in enumerate(groups):
            name = str(each.get("name", f"group {index}"))  # as the recorder names it
            sizes[name] = sizes.get(name, 0) + int(each.get("parameters", 0))
        return sizes.get(group, 0) / sum(sizes.values()) if any(sizes.values()) else None
    if run.layers is None or "name" not in run.layers.column_names or not run.layers.num_rows:
        return None
    tensors = run.layers["name"].unique().to_pylist()
    return sum(str(name).split(".")[0] == group for name in tensors) / len(tensors)
