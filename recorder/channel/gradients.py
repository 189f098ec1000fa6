"""What the loop does with the gradients of one optimizer before its step: measuring, clipping, telling."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import torch
from torch import Tensor
from torch.optim import Optimizer

from recorder.channel.rows import Rows
from recorder.describe import gradient_dtypes
from recorder.guard import Guard
from recorder.movements import Movements
from recorder.owned import OwnedParameters
from recorder.probes import GradientNorms, clip_finite_, gradient_norms, over_all_shares, total_norm
from recorder.readings import number_or_copy
from recorder.scaling import ScalerWatch
from recorder.shards import GLOBAL, LOCAL


class Gradients(Rows):
    """Fills the columns of the gradient and of the clipping."""

    optimizer: Optimizer
    max_norm: float | None
    gradient_dtypes: dict[str, int]
    _owned: OwnedParameters
    _movements: Movements
    _guard: Guard
    _reduced: Callable[[], str | None]
    _scaler: ScalerWatch

    def measure(self, source: str = "recorder", together: bool = False) -> GradientNorms:
        """Norms of the gradients as they are now, and the gradient itself for the cosine.

        Once a row is clipped its norm stands: what is measured later is no longer before the clipping. `together` all
        processes measure what is spread over them: one exchange. Otherwise each measures its own share.
        """
        scaled_by = self._scaler.scale() if self._scaler.holds_scaled else None
        parameters = self._owned.now()
        gradient = gradient_norms(parameters, scaled_by)
        scope, of_share = self._owned.scope or self._reduced(), self._owned.scope == LOCAL
        if together and of_share:
            gradient, scope, of_share = over_all_shares(gradient, parameters), GLOBAL, False
        row = self.row if source == "at_step" else self.backward_row()
        if row is None or (row.clips and row.gradient is not None):
            return gradient
        if not self.gradient_dtypes:
            self.gradient_dtypes = gradient_dtypes(gradient.parameters)
        row.gradient, row.gradient_is_share = gradient, of_share
        row.gradient_source = row.gradient_source or source
        if row.gradient_source == source:
            row.norm_scope = scope
        with self._guard:
            if self.is_deep:
                row.layers = self._movements.layer_gradients(gradient)
            self._movements.gradient(parameters, self.is_deep)
        return gradient

    def clip_grad_norm_(self, max_norm: float | None) -> Tensor:
        """Unscale unless done, measure, clip what is finite. Returns the norm before clipping, 0-d.

        Collective where the parameters are spread over processes, as torch's own function is.
        """
        self._scaler.unscale_()
        limit = self.max_norm if max_norm is None else float(max_norm)
        measured: GradientNorms | None = None
        with self._guard:
            measured = self.measure(together=True)
        if measured is None:
            tensors = [p for group in self.optimizer.param_groups for p in group["params"]]
            return torch.nn.utils.clip_grad_norm_(tensors, float("inf") if limit is None else limit)
        total = total_norm(measured)
        if limit is not None:
            clip_finite_(measured, total, limit)
            self._note_clip(total, limit)
        return total if isinstance(total, Tensor) else torch.scalar_tensor(total, dtype=torch.float64)

    def observe_grad_norm(self, norm: Tensor | float, max_norm: float | None) -> None:
        """Take the norm that the loop measured by itself, before its own clipping.

        Where the recorder measured before, its own norm stands, and this one only gives the factor of the clipping;
        unless its own is of one share, and this one of all.
        """
        row = self.backward_row()
        if row is None:
            return
        seen, scope = number_or_copy(norm), self._scope_told(norm)
        if not row.clips:
            row.observed_scaled_by = self._scaler.scale() if self._scaler.holds_scaled else None
            if row.gradient is None or (row.gradient_is_share and scope == GLOBAL):
                row.observed_norm = seen
                row.gradient_source, row.norm_scope = "observed", scope
        if max_norm is not None:
            self._note_clip(seen, float(max_norm))

    def observe_clipping(self, max_norm: float) -> None:
        """Take it that the loop clips now, by the norm that was measured just before."""
        row = self.backward_row()
        if row is None or row.gradient is None:
            return
        if not row.clips:
            row.observed_scaled_by = self._scaler.scale() if self._scaler.holds_scaled else None
        # The norm of one share is not what the loop clips by.
        self._note_clip(nan if row.gradient_is_share else total_norm(row.gradient), max_norm)

    @property
    def _holds_shares(self) -> bool:
        """Whether the parameters are spread over processes."""
        self._owned.now()
        return self._owned.scope == LOCAL

    def _scope_told(self, norm: Tensor | float) -> str | None:
        """Whose gradients a norm is of that the loop tells; of shares a plain number does not say."""
        if self._holds_shares:
            return GLOBAL if hasattr(norm, "placements") else None
        return self._owned.scope or self._reduced()

    def _note_clip(self, norm: Tensor | float, limit: float) -> None:
        row = self.backward_row()
        if row is not None:
            row.clips.append((number_or_copy(norm), limit))
