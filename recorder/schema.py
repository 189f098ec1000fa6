"""The columns of a run, in causal order, and where each of them applies.

One row is one transition of one optimizer. Parquet has a single null; here it has two meanings, told
apart by each column's `applies`: null where the column applies is *not recorded*, null where it does
not is *not applicable*. NaN and the infinities are values and never stand for either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA_VERSION = 1
USER_PREFIX = "user_"

Mask = NDArray[np.bool_]

_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
}


class Rows(Protocol):
    """What a predicate may ask of a table of rows: a column's values and which of them are recorded."""

    def values(self, name: str) -> NDArray[Any]: ...

    def recorded(self, name: str) -> Mask: ...

    def equals(self, name: str, text: str) -> Mask: ...


def _always(rows: Rows, name: str) -> Mask:
    return np.ones(len(rows.recorded(name)), dtype=np.bool_)


def _where_recorded(rows: Rows, name: str) -> Mask:
    """Null itself says that there was nothing to record: no scaler, no limit, no skip, one group."""
    return rows.recorded(name)


def _where_executed(rows: Rows, name: str) -> Mask:
    """Unless it is known that nothing executed."""
    return rows.values("executed").astype(np.bool_) | ~rows.recorded("executed")


def _where_moved(rows: Rows, name: str) -> Mask:
    """A movement of zero has no direction."""
    still = rows.recorded("moved") & ~rows.values("moved").astype(np.bool_)
    return _where_executed(rows, name) & ~still


def _where_gradient(rows: Rows, name: str) -> Mask:
    """Rows with a complete gradient: attempted ones, and those declined because of what it held."""
    declined = rows.equals("skip_reason", "nonfinite_grad")
    return rows.values("attempted").astype(np.bool_) | ~rows.recorded("attempted") | declined


def _where_nonfinite(rows: Rows, name: str) -> Mask:
    return rows.values("grad_nonfinite_params") > 0


@dataclass(frozen=True)
class Column:
    """One column: its name, storage type, unit, and the predicate for where it applies.

    `phase` is its place in the causal order of a transition; `tier` is when the recorder fills it:
    always, on deep rows, or when the loop tells it (`asked`).
    """

    name: str
    dtype: str
    phase: str
    tier: str
    unit: str
    help: str
    applies: Callable[[Rows, str], Mask] = _always

    @property
    def is_text(self) -> bool:
        return self.dtype == "string"

    @property
    def arrow(self) -> pa.DataType:
        return _ARROW[self.dtype]


# fmt: off
STEPS: tuple[Column, ...] = (
    Column("row", "int64", "identity", "always", "", "number of the transition, from 0, one for all its optimizers"),
    Column("segment", "int32", "identity", "always", "", "0, and one more after each resume"),
    Column("step", "int64", "identity", "always", "", "the loop's own step; may go back after a resume"),
    Column("micro_step", "int32", "identity", "always", "", "place of the row within its step"),
    Column("optimizer", "string", "identity", "always", "", "name of the optimizer this row belongs to"),
    Column("time_ns", "int64", "identity", "always", "ns", "when the transition began, since the epoch"),
    Column("batch_id", "string", "batch", "asked", "", "what the loop calls the batch"),
    Column("loss", "double", "forward", "always", "", "raw loss of this row, never smoothed"),
    Column("loss_sum", "double", "forward", "asked", "", "numerator of the loss"),
    Column("loss_count", "int64", "forward", "asked", "", "denominator of the loss: valid targets"),
    Column("loss_p50", "double", "forward", "asked", "", "median of the per-example losses"),
    Column("loss_p99", "double", "forward", "asked", "", "99th percentile of the per-example losses"),
    Column("loss_max", "double", "forward", "asked", "", "largest per-example loss"),
    Column("input_absmax", "double", "forward", "asked", "", "largest magnitude among the inputs"),
    Column("activation_absmax", "double", "forward", "deep", "", "largest magnitude among the modules' outputs"),
    Column("first_nonfinite_module", "string", "forward", "deep", "", "the first whose output holds a NaN or Inf", _where_recorded),
    Column("nonfinite_buffers", "int32", "forward", "deep", "", "buffers of the model that hold a NaN or Inf"),
    Column("precision", "string", "forward", "always", "", "autocast's type as last seen (first and deep rows), else the parameters'"),
    Column("rng_seed", "int64", "forward", "always", "", "torch.initial_seed()"),
    Column("grad_norm", "double", "backward", "always", "", "L2 norm of all gradients, unscaled, before clipping", _where_gradient),
    Column("grad_norm_source", "string", "backward", "always", "", "recorder, observed, or at_step (may be clipped)", _where_gradient),
    Column("grad_norm_is_unscaled", "bool", "backward", "always", "", "false: the loop clipped or measured while scaled", _where_gradient),
    Column("norm_scope", "string", "backward", "always", "", "whose gradients the norm is of: global, or local to this rank", _where_gradient),
    Column("grad_nonfinite_params", "int32", "backward", "always", "", "parameters whose gradient holds a NaN or Inf", _where_gradient),
    Column("grad_none_params", "int32", "backward", "always", "", "parameters that need a gradient and have none", _where_gradient),
    Column("first_nonfinite_param", "string", "backward", "always", "", "the first of them", _where_nonfinite),
    Column("top_group", "string", "backward", "always", "", "group with the largest share of the squared norm", _where_recorded),
    Column("top_group_share", "double", "backward", "always", "", "its share, 0 to 1", _where_recorded),
    Column("max_norm", "double", "clip", "always", "", "the limit the gradient was clipped to", _where_recorded),
    Column("clip_coef", "double", "clip", "always", "", "factor really applied; 1 where nothing was cut", _where_recorded),
    Column("loss_scale", "double", "scaler", "always", "", "scale this row ran under", _where_recorded),
    Column("attempted", "bool", "clocks", "always", "", "the loop called step() for this optimizer"),
    Column("executed", "bool", "clocks", "always", "", "the step ran; a scaler may have declined it"),
    Column("moved", "bool", "clocks", "always", "", "a parameter changed", _where_executed),
    Column("scheduled", "int32", "clocks", "always", "", "by how much the scheduler moved in this row", _where_recorded),
    Column("attempted_n", "int64", "clocks", "always", "", "attempts so far"),
    Column("executed_n", "int64", "clocks", "always", "", "executions so far"),
    Column("scheduled_n", "int64", "clocks", "always", "", "scheduler steps so far", _where_recorded),
    Column("skip_reason", "string", "clocks", "always", "", "why nothing executed, where it is known", _where_recorded),
    Column("lr", "double", "optimizer", "always", "", "learning rate of the first group in this row"),
    Column("group_lrs", "string", "optimizer", "always", "", "those of the second to the ninth group, apart by spaces", _where_recorded),
    Column("param_norm", "double", "optimizer", "always", "", "L2 norm of the parameters before the update", _where_executed),
    Column("update_norm", "double", "optimizer", "always", "", "L2 norm of the change of the parameters", _where_executed),
    Column("update_ratio", "double", "optimizer", "always", "", "update_norm / param_norm", _where_executed),
    Column("update_cosine", "double", "optimizer", "always", "", "cosine of the change with the negative gradient", _where_moved),
    Column("update_kind", "string", "optimizer", "always", "", "exact or sampled: how the three above were measured", _where_executed),
    Column("update_scope", "string", "optimizer", "always", "", "whose parameters they are of: global, or local to this rank", _where_executed),
    Column("memory_bytes", "int64", "machine", "always", "B", "allocated on the device; on a CPU resident, as of 10 ms ago at most"),
)

LAYERS: tuple[Column, ...] = (
    Column("row", "int64", "identity", "deep", "", "row of the steps table"),
    Column("optimizer", "string", "identity", "deep", "", "optimizer that owns the parameter"),
    Column("name", "string", "identity", "deep", "", "parameter"),
    Column("grad_norm", "double", "backward", "deep", "", "L2 norm of its gradient, unscaled, before clipping"),
    Column("grad_absmax", "double", "backward", "deep", "", "largest magnitude in its gradient"),
    Column("grad_nonfinite", "int64", "backward", "deep", "", "NaN and Inf in its gradient"),
    Column("grad_nonfinite_share", "double", "backward", "deep", "", "their share of its numbers, 0 to 1"),
    Column("param_norm", "double", "optimizer", "deep", "", "L2 norm of the parameter before the update"),
    Column("update_ratio", "double", "optimizer", "deep", "", "norm of its change / param_norm"),
)
# fmt: on

COLUMNS: dict[str, Column] = {column.name: column for column in STEPS}


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """The Arrow schema of a table of these columns, in their order."""
    return pa.schema([pa.field(column.name, column.arrow) for column in columns])
