"""What one optimizer's row holds before its numbers are read, and how it becomes the columns of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from operator import attrgetter
from typing import Any

from torch import Tensor

from recorder.deep import ForwardReadings
from recorder.layers import Layers
from recorder.probes import GradientNorms, Vector, total_of
from recorder.shards import LOCAL

Reading = Tensor | float | int | None


@dataclass(slots=True)
class Measures:
    """One row in progress. Fields are `Reading`s: a tensor wherever it lives, a number, or None for not recorded."""

    values: dict[str, Any]
    user: dict[str, Any] = field(default_factory=dict)
    loss: Reading = None
    loss_count: Reading = None
    loss_quantiles: Vector | None = None
    input_absmax: Reading = None
    forward: ForwardReadings | None = None
    lr: Reading = None
    group_lrs: Sequence[Reading] = ()
    scale: Reading = None
    gradient: GradientNorms | None = None
    gradient_source: str | None = None
    gradient_is_share: bool = False
    norm_scope: str | None = None
    observed_norm: Reading = None
    observed_scaled_by: Reading = None
    clips: list[tuple[Tensor | float, float]] = field(default_factory=list)
    attempted: bool = False
    was_answered: bool = False
    fired: bool = False
    found_inf: Reading = None
    movement: Vector | None = None
    movement_is_exact: bool = False
    update_scope: str | None = None
    maximize: bool = False
    accumulating: bool = False
    declared_skip: str | None = None
    layers: Layers | None = None
    gradient_scale: float | None = None

    @property
    def is_accumulating(self) -> bool:
        """Whether the loop said so, before or after the fact."""
        return self.accumulating or self.declared_skip == "accumulating"

    def readings(self) -> dict[str, Tensor]:
        """The tensors whose numbers `columns` needs, by name: none where all were on the host."""
        if self._is_on_host():
            return {}
        found: dict[str, Any] = dict(zip(_SCALARS, _scalars_of(self), strict=True))
        found |= {f"{_CLIP}{index}": norm for index, (norm, _) in enumerate(self.clips)}
        found |= {f"{_LR}{index}": lr for index, lr in enumerate(self.group_lrs)}
        if self.gradient is not None:
            found["norms"], found["nonfinite"], _, _, found["scaled_by"] = self.gradient
        if self.forward is not None:
            found |= self.forward.readings()
        if self.layers is not None:
            found |= self.layers.readings()
        found |= {_USER + name: value for name, value in self.user.items()}
        return {name: value for name, value in found.items() if isinstance(value, Tensor)}

    def _is_on_host(self) -> bool:
        """Whether no number is in a tensor, as always on a CPU but for a deep row."""
        if self.forward is not None or self.layers is not None:
            return False
        values = [*_scalars_of(self), *self.group_lrs, *self.user.values()]
        if self.gradient is not None:
            values += self.gradient.norms, self.gradient.nonfinite, self.gradient.scaled_by
        values += [norm for norm, _ in self.clips]
        return _HOST.issuperset(map(type, values))

    def columns(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The schema's columns of this row. `numbers` answers `readings`, by name."""
        row = dict(self.values)
        loss, count = numbers.get("loss", self.loss), numbers.get("loss_count", self.loss_count)
        row["loss"] = loss
        if count is not None and loss is not None and isfinite(count):
            row["loss_count"], row["loss_sum"] = int(count), loss * count
        if self.loss_quantiles is not None:
            row["loss_p50"], row["loss_p99"], row["loss_max"] = numbers.get("loss_quantiles", self.loss_quantiles)
        row["input_absmax"] = numbers.get("input_absmax", self.input_absmax)
        row["lr"] = numbers.get("lr", self.lr)
        if self.group_lrs:
            lrs = (numbers.get(f"{_LR}{index}", lr) for index, lr in enumerate(self.group_lrs))
            row["group_lrs"] = " ".join(f"{lr:.9g}" for lr in lrs)
        row["loss_scale"] = numbers.get("scale", self.scale)
        if self.forward is not None:
            row |= self.forward.columns(numbers)
        if self.gradient is not None:
            self._gradient_columns(self.gradient, numbers, row)
        if self.gradient_source is not None:
            row["grad_norm_source"] = self.gradient_source
            row["grad_norm_is_unscaled"] = self.observed_scaled_by is None
            row["norm_scope"] = self.norm_scope
        observed = numbers.get("observed_norm", self.observed_norm)
        if observed is not None:
            row["grad_norm"] = observed / (numbers.get("observed_scaled_by", self.observed_scaled_by) or 1.0)
        if self.clips:
            row["max_norm"] = self.clips[-1][1]
            row["clip_coef"] = None if row.get("grad_nonfinite_params") else self._clip_coef(numbers)
        row["attempted"] = self.attempted
        row["executed"] = executed = self.fired and not numbers.get("found_inf", self.found_inf)
        if not executed:
            row["skip_reason"] = self._skip_reason(row)
        elif self.movement is not None:
            measured = numbers.get("movement", self.movement)
            if measured[1] or measured[0] or self.update_scope != LOCAL:  # it may hold no number of the model
                _update_columns(row, measured, self.movement_is_exact, self.maximize)
                row["update_scope"] = self.update_scope
            if self.update_scope == LOCAL and not row.get("moved"):
                row["moved"] = None  # what others hold may have moved
        return row

    def user_fields(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The loop's own fields with tensors read."""
        return {name: numbers.get(_USER + name, value) for name, value in self.user.items()}

    def _gradient_columns(self, gradient: GradientNorms, numbers: Mapping[str, Any], row: dict[str, Any]) -> None:
        norms, flags = numbers.get("norms", gradient.norms), numbers.get("nonfinite", gradient.nonfinite)
        self.gradient_scale = numbers.get("scaled_by", gradient.scaled_by)
        total = total_of(norms, flags)
        bad = sum(map(bool, flags))
        row["grad_norm"] = total / (self.gradient_scale or 1.0)
        row["grad_nonfinite_params"] = bad
        row["grad_none_params"] = gradient.none_count
        if bad:
            parameters = zip(gradient.parameters, flags, strict=True)
            row["first_nonfinite_param"] = next(p.name for p, flag in parameters if flag)
        elif isfinite(total) and total > 0 and not self.gradient_is_share:
            row |= _top_group(gradient, norms, total)

    def _clip_coef(self, numbers: Mapping[str, Any]) -> float | None:
        """The factor really applied, over all clippings of the row, from the norm that each of them saw."""
        factor = 1.0
        for index, (seen, limit) in enumerate(self.clips):
            norm = numbers.get(f"{_CLIP}{index}", seen)
            if norm is None or not isfinite(norm):
                return None
            factor *= min(1.0, limit / (norm + 1e-6))
        return factor

    def _skip_reason(self, row: Mapping[str, Any]) -> str | None:
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
_LR = "lr:"
_HOST = {float, int, bool, str, list, type(None)}
_SCALARS = (
    "loss", "loss_count", "loss_quantiles", "input_absmax", "lr", "scale",
    "observed_norm", "observed_scaled_by", "found_inf", "movement",
)  # fmt: skip
_scalars_of = attrgetter(*_SCALARS)


def _top_group(gradient: GradientNorms, norms: list[float], total: float) -> dict[str, Any]:
    squares: dict[str, float] = {}
    for parameter, norm in zip(gradient.parameters, norms, strict=True):
        share = norm / total
        squares[parameter.group] = squares.get(parameter.group, 0.0) + share * share
    if len(squares) < 2:
        return {}
    top = max(squares, key=squares.__getitem__)
    return {"top_group": top, "top_group_share": squares[top]}


def _update_columns(row: dict[str, Any], measured: Sequence[float], exact: bool, maximize: bool) -> None:
    """update_ratio = |d| / |theta|, update_cosine = cos(d, -g); ascent flips the sign of g."""
    update, before = sqrt(measured[0]), sqrt(measured[1])
    row["update_norm"] = update
    row["param_norm"] = before
    row["update_ratio"] = update / before if before else (0.0 if update == 0 else inf)
    row["update_kind"] = "exact" if exact else "sampled"
    if update != 0 or exact:
        # A sample that stood still does not prove that everything did.
        row["moved"] = update != 0
    if update != 0:
        inner, gradient = measured[2], sqrt(measured[3])
        if gradient != 0:
            cosine = (inner if maximize else -inner) / (update * gradient)
            row["update_cosine"] = min(1.0, max(-1.0, cosine)) if isfinite(cosine) else cosine
