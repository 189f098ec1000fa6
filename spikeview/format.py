"""How a value is written for people, in one place: numbers, the kinds of a cell, the names of signals."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from recorder.sample_ids import summary
from recorder.schema import COLUMNS
from spikeview.cells import Kind
from spikeview.run import Run

KIND_NAMES: dict[Kind, str] = {
    Kind.FINITE: "finite",
    Kind.NAN: "nan",
    Kind.POS_INF: "inf",
    Kind.NEG_INF: "inf",
    Kind.NOT_APPLICABLE: "not_applicable",
    Kind.NOT_RECORDED: "not_recorded",
}
NO_VALUE = {Kind.NOT_APPLICABLE: "—", Kind.NOT_RECORDED: "ø"}
WHY_NONE = {"not_applicable": "not applicable", "not_recorded": "not recorded"}

LABELS: dict[str, str] = {
    "batch_id": "batch",
    "input_absmax": "largest input",
    "activation_absmax": "largest activation",
    "grad_norm": "pre-clip norm",
    "grad_norm_source": "norm measured by",
    "grad_norm_is_unscaled": "norm unscaled",
    "grad_nonfinite_params": "non-finite gradients",
    "grad_none_params": "parameters without a gradient",
    "first_nonfinite_param": "first non-finite gradient",
    "top_group_share": "top group's share",
    "max_norm": "max_norm",
    "clip_coef": "clip coefficient",
    "attempted_n": "attempts so far",
    "executed_n": "executions so far",
    "scheduled_n": "scheduler steps so far",
    "scheduled": "scheduler moved by",
    "lr": "learning rate",
    "group_lrs": "other groups' rates",
    "param_norm": "parameter norm",
    "update_cosine": "cosine",
    "update_kind": "update measured",
}
# What acts instead of being seen: control characters, those that turn the direction of writing, line breaks, and
# lone surrogates, which no encoding takes.
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST = 200
DIGITS = 4
WHOLE = 1e6
LARGEST_SCALE = 1e12


def label(name: str) -> str:
    """The name of a column in a sentence, a card or a table's head."""
    return LABELS.get(name) or shown(name.replace("_", " "))


def printable(text: str) -> str:
    """A text from a run as it may be shown anywhere: what would act on the reader's screen is written as its code."""
    return UNSEEN.sub(lambda found: _escaped(ord(found[0])), text)


def shown(text: str, longest: int = LONGEST) -> str:
    """A name or a value from a run: printable, and of a very long one the beginning and its length.

    Of a batch id that lists too many samples to be read, what it comes to.
    """
    listed = summary(text)
    if listed is not None or len(text) <= longest:
        return printable(listed or text)
    return f"{printable(text[: longest // 2])}… ({count(len(text))} characters)"


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def number(value: float, signed: bool = False, digits: int = DIGITS) -> str:
    """A number to four significant digits: `0.04512`, `3.785e+08`, `NaN`, `-Inf`; a whole one as it is: `65536`.

    `digits` is fewer only where many numbers stand side by side in columns.
    """
    sign = "+" if signed else ""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    if value == round(value) and abs(value) <= WHOLE:
        return f"{value:{sign}.0f}"
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])
    if -5 < magnitude < 6:
        return f"{value:{sign}.{max(0, digits - 1 - magnitude)}f}"
    return f"{value:{sign}.{digits - 1}e}"


def count(value: int) -> str:
    """A count with its thousands apart: `12,480`."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """`1 row`, `12,480 rows`."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def capital(text: str) -> str:
    """A text as it begins a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def percent(share: float | None) -> str:
    """A share, 0 to 1, in per cent; `ø` where it is not known."""
    return NO_VALUE[Kind.NOT_RECORDED] if share is None else f"{100 * share:.0f} %"


def sentence(text: str) -> str:
    """The text with a full stop at its end, where it has no end of its own."""
    return text if not text or text[-1] in ".!?" else f"{text}."


def mads(deviation: float) -> str:
    """A distance from the baseline in MADs, signed: `-7.1`, `+14`, `+9.1e+09`."""
    if abs(deviation) < 1e4:
        return f"{deviation:+z.1f}" if abs(deviation) < 9.95 else f"{deviation:+.0f}"
    return f"{deviation:+.1e}" if math.isfinite(deviation) else number(deviation)


def plain(value: Any) -> Any:
    """The value as JSON can hold it: non-finite numbers become the strings `nan`, `inf` and `-inf`."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def scalar(name: str, value: Any, digits: int = DIGITS) -> str:
    """A recorded value of a column as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "time_ns":
        return datetime.fromtimestamp(value / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if isinstance(value, float):
        if name == "loss_scale" and value.is_integer() and value < LARGEST_SCALE:
            return f"{value:.0f}"
        return number(value, signed=name == "update_cosine", digits=digits)
    return shown(str(value))


def cell(run: Run, name: str, position: int, digits: int = DIGITS) -> dict[str, Any]:
    """One cell: its `kind` (one of five), its `value` (None where there is none) and its `text`."""
    kind = Kind(int(run.kind(name)[position]))
    if kind in NO_VALUE:
        return {"kind": KIND_NAMES[kind], "value": None, "text": NO_VALUE[kind]}
    column = COLUMNS.get(name)
    raw = run.values(name)[position]
    value = str(raw) if column is not None and column.is_text else raw.item() if hasattr(raw, "item") else raw
    return {"kind": KIND_NAMES[kind], "value": plain(value), "text": scalar(name, value, digits)}


def words(run: Run, name: str, position: int) -> str:
    """One cell in a sentence: its text, or why there is none."""
    found = cell(run, name, position)
    return WHY_NONE.get(found["kind"], str(found["text"]))
