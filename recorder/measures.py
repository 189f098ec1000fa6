"""What one optimizer's row holds before its numbers are read, and how it becomes the columns of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, isfinite, sqrt
from typing import Any

from torch import Tensor

from recorder.deep import ForwardReadings
from recorder.layers import Layers
from recorder.probes import GradientNorms
from recorder.readings import Numbers

Reading = Tensor | float | int | None


@dataclass(slots=True)
class Measures:
    """One row in progress. Fields are `Reading`s: a tensor wherever it lives, a number, or None for not recorded."""

    values: dict[str, Any]
    user: dict[str, Any] = field(default_factory=dict)
    loss: Reading = None
    loss_count: Reading = None
    loss_quantiles: Tensor | None = None
    input_absmax: Reading = None
    forward: ForwardReadings | None = None
    lr: Reading = None
    scale: Reading = None
    gradient: GradientNorms | None = None
    gradient_source: str | None = None
    observed_norm: Reading = None
    observed_scaled_by: Reading = None
    clips: list[tuple[Tensor | float, float]] = field(default_factory=list)
    attempted: bool = False
    was_answered: bool = False
    fired: bool = False
    found_inf: Tensor | None = None
    movement: Tensor | None = None
    movement_is_exact: bool = False
    maximize: bool = False
    accumulating: bool = False
    declared_skip: str | None = None
    layers: Layers | None = None
    gradient_scale: float | None = None

    def readings(self) -> dict[str, Tensor]:
        """The tensors whose numbers `columns` needs."""
        found = {name: getattr(self, name) for name in _READINGS}
        if self.gradient is not None:
            found["norms"] = self.gradient.norms
            found["nonfinite"] = self.gradient.nonfinite
            found["scaled_by"] = self.gradient.scaled_by
        if self.forward is not None:
            found |= self.forward.readings()
        if self.layers is not None:
            found |= self.layers.readings()
        found |= {_USER + name: value for name, value in self.user.items()}
        found |= {f"{_CLIP}{index}": norm for index, (norm, _) in enumerate(self.clips)}
        return {name: value for name, value in found.items() if isinstance(value, Tensor)}

    def columns(self, numbers: Mapping[str, Numbers]) -> dict[str, Any]:
        """The schema's columns of this row, counters aside. `numbers` answers `readings`, by name."""

        def read(name: str, value: Reading) -> float | None:
            if isinstance(value, Tensor):
                return float(numbers[name][0])
            return None if value is None else float(value)

        row = dict(self.values)
        loss, count = read("loss", self.loss), read("loss_count", self.loss_count)
        row["loss"] = loss
        if count is not None and loss is not None and isfinite(count):
            row["loss_count"], row["loss_sum"] = int(count), loss * count
        if self.loss_quantiles is not None:
            row["loss_p50"], row["loss_p99"], row["loss_max"] = numbers["loss_quantiles"].tolist()
        for name in ("input_absmax", "lr"):
            row[name] = read(name, getattr(self, name))
        if self.forward is not None:
            row |= self.forward.columns(numbers)
        row["loss_scale"] = read("scale", self.scale)
        if self.gradient is not None:
            self.gradient_scale = read("scaled_by", self.gradient.scaled_by)
            row |= _gradient_columns(self.gradient, numbers, self.gradient_scale)
        row["grad_norm_source"] = self.gradient_source
        row["grad_norm_is_unscaled"] = None if self.gradient_source is None else self.observed_scaled_by is None
        observed, scaled_by = (read(name, getattr(self, name)) for name in ("observed_norm", "observed_scaled_by"))
        if observed is not None:
            row["grad_norm"] = observed / scaled_by if scaled_by else observed
        if self.clips:
            row["max_norm"] = self.clips[-1][1]
            norms = [read(f"{_CLIP}{index}", norm) for index, (norm, _) in enumerate(self.clips)]
            row["clip_coef"] = None if row.get("grad_nonfinite_params") else self._clip_coef(norms)
        row["attempted"] = self.attempted
        row["executed"] = self.fired and not read("found_inf", self.found_inf)
        row["skip_reason"] = self._skip_reason(row)
        if row["executed"] and self.movement is not None:
            row |= _update_columns(numbers["movement"], self.movement_is_exact, self.maximize)
        return row

    def user_fields(self, numbers: Mapping[str, Numbers]) -> dict[str, Any]:
        """The loop's own fields with tensors read."""
        read = {name: float(numbers[_USER + name][0]) for name in self.user if _USER + name in numbers}
        return {**self.user, **read}

    def _clip_coef(self, norms: Sequence[float | None]) -> float | None:
        """The factor really applied, over all clippings of the row, from the norm that each of them saw."""
        factor = 1.0
        for norm, (_, limit) in zip(norms, self.clips, strict=True):
            if norm is None or not isfinite(norm):
                return None
            factor *= min(1.0, limit / (norm + 1e-6))
        return factor

    def _skip_reason(self, row: Mapping[str, Any]) -> str | None:
        if row["executed"]:
            return None
        if self.attempted:
            return "amp_overflow" if self.was_answered else None
        if self.declared_skip is not None:
            return self.declared_skip
        if self.accumulating:
            return "accumulating"
        if row["loss"] is not None and not isfinite(row["loss"]):
            return "nonfinite_loss"
        return "nonfinite_grad" if row.get("grad_nonfinite_params") else None


_USER = "user:"
_CLIP = "clip:"
_READINGS = (
    "loss", "loss_count", "loss_quantiles", "input_absmax", "lr", "scale",
    "observed_norm", "observed_scaled_by", "found_inf", "movement",
)  # fmt: skip


def _gradient_columns(
    gradient: GradientNorms, numbers: Mapping[str, Numbers], scaled_by: float | None
) -> dict[str, Any]:
    norms, flags = numbers["norms"].tolist(), numbers["nonfinite"].tolist()
    bad = sum(map(bool, flags))
    # hypot neither overflows nor underflows, but prefers Inf to NaN where there are both.
    total = float(sum(norms)) if bad else hypot(*norms)
    row: dict[str, Any] = {
        "grad_norm": total / scaled_by if scaled_by else total,
        "grad_nonfinite_params": bad,
        "grad_none_params": gradient.none_count,
    }
    if bad:
        row["first_nonfinite_param"] = next(p.name for p, flag in zip(gradient.parameters, flags, strict=True) if flag)
    elif isfinite(total) and total > 0:
        row |= _top_group(gradient, norms, total)
    return row


def _top_group(gradient: GradientNorms, norms: list[float], total: float) -> dict[str, Any]:
    squares: dict[str, float] = {}
    for parameter, norm in zip(gradient.parameters, norms, strict=True):
        share = norm / total
        squares[parameter.group] = squares.get(parameter.group, 0.0) + share * share
    if len(squares) < 2:
        return {}
    top = max(squares, key=squares.__getitem__)
    return {"top_group": top, "top_group_share": squares[top]}


def _update_columns(measured: Numbers, exact: bool, maximize: bool) -> dict[str, Any]:
    """update_ratio = |d| / |theta|, update_cosine = cos(d, -g); ascent flips the sign of g."""
    update, before = sqrt(measured[0]), sqrt(measured[1])
    row: dict[str, Any] = {
        "update_norm": update,
        "param_norm": before,
        "update_ratio": update / before if before else (0.0 if update == 0 else float("inf")),
        "update_kind": "exact" if exact else "sampled",
    }
    if update != 0 or exact:
        # A sample that stood still does not prove that everything did.
        row["moved"] = update != 0
    if update != 0:
        inner, gradient = float(measured[2]), sqrt(measured[3])
        if gradient != 0:
            cosine = (inner if maximize else -inner) / (update * gradient)
            row["update_cosine"] = min(1.0, max(-1.0, cosine)) if isfinite(cosine) else cosine
    return row
