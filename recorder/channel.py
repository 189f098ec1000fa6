"""One optimizer as the recorder follows it: its parameters, its steps, and the row they fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer

from recorder.clocks import Clocks, StepWatch, scheduler_position
from recorder.guard import Guard
from recorder.measures import Measures
from recorder.movement import Movement
from recorder.movements import Movements
from recorder.owned import OwnedParameters
from recorder.probes import GradientNorms, clip_finite_, gradient_norms, total_norm
from recorder.readings import number
from recorder.scaling import ScalerWatch


class Channel:
    """Fills `row`, the `Measures` of one optimizer, while a transition is open.

    `again` is called when the optimizer steps a second time within one transition: it must store the finished row and
    open the next one.
    """

    def __init__(
        self,
        name: str,
        optimizer: Optimizer,
        *,
        names: Callable[[], dict[int, str]],
        scaler: GradScaler | None,
        scheduler: Any,
        max_norm: float | None,
        deep_parameters: Sequence[str],
        guard: Guard,
        again: Callable[[Channel], None],
    ) -> None:
        self.name = name
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.max_norm = max_norm
        self.clocks = Clocks(scheduled=None if scheduler is None else 0)
        self.row: Measures | None = None
        self.ahead: Measures | None = None
        self.opened: list[Measures] = []
        self.is_deep = False
        self.scheduler_seen = scheduler_position(scheduler)
        self._owned = OwnedParameters(optimizer, names)
        self._movements = Movements(deep_parameters)
        self._guard = guard
        self._again = again
        self._evaluations: int | None = None
        self._scaler = ScalerWatch(scaler, optimizer, self._through_scaler)
        self._watch = StepWatch(optimizer, self._before_step, self._after_step)

    def detach(self) -> None:
        self._watch.detach()
        self._scaler.detach()

    @property
    def deep_seconds(self) -> float:
        """What this row has spent on what only a deep row does."""
        return self._movements.deep_seconds

    def open(self, row: Measures, deep: bool) -> None:
        """Begin a row. What it ran under is read now, and again when the step is attempted."""
        self.row, self.ahead = row, None
        self.opened.append(row)
        self.is_deep = deep
        self._movements.deep_seconds = 0.0
        self._read_settings(row)

    def forward_row(self) -> Measures | None:
        """The row that a forward observation belongs to: a second loss after a step opens the next row's."""
        row = self.row
        if row is None or self._evaluations is not None:
            return self._closure_row()
        return self._next_row() if row.attempted and row.loss is not None else row

    def backward_row(self) -> Measures | None:
        """The row that a gradient measured now belongs to: after a step it is no longer that step's."""
        if self.row is None or self._evaluations is not None:
            return self._closure_row()
        return self._next_row() if self.row.attempted else self.row

    def _closure_row(self) -> Measures | None:
        """Within a closure the row holds its first evaluation; later ones go nowhere."""
        return self.row if self._evaluations in (None, 0) else Measures({})

    def _next_row(self) -> Measures:
        """Measures for a row that only comes about if the optimizer steps again within the transition."""
        if self.ahead is None:
            self.ahead = Measures({})
        return self.ahead

    def measure(self, source: str = "recorder") -> GradientNorms:
        """Norms of the gradients as they are now, and the gradient itself for the cosine.

        Once a row is clipped its norm stands: what is measured later is no longer before the clipping.
        """
        scaled_by = self._scaler.scale() if self._scaler.holds_scaled else None
        gradient = gradient_norms(self._owned.now(), scaled_by)
        row = self.row if source == "at_step" else self.backward_row()
        if row is None or (row.clips and row.gradient is not None):
            return gradient
        row.gradient = gradient
        row.gradient_source = row.gradient_source or source
        with self._guard:
            if self.is_deep:
                row.layers = self._movements.layer_gradients(gradient)
            self._each(Movement.gradient)
        return gradient

    def clip_grad_norm_(self, max_norm: float | None) -> Tensor:
        """Unscale unless done, measure, clip what is finite. Returns the norm before clipping, 0-d."""
        self._scaler.unscale_()
        limit = self.max_norm if max_norm is None else float(max_norm)
        measured: GradientNorms | None = None
        with self._guard:
            measured = self.measure()
        if measured is None:
            tensors = [p for group in self.optimizer.param_groups for p in group["params"]]
            return torch.nn.utils.clip_grad_norm_(tensors, float("inf") if limit is None else limit)
        total = total_norm(measured)
        if limit is not None:
            clip_finite_(measured, total, limit)
            self._note_clip(total, limit)
        return total

    def observe_grad_norm(self, norm: Tensor | float, max_norm: float | None) -> None:
        """Take the norm that the loop measured by itself, before its own clipping."""
        row = self.backward_row()
        if row is None:
            return
        seen = number_or_copy(norm)
        if not row.clips:
            row.observed_norm = seen
            row.gradient_source = "observed"
            row.observed_scaled_by = self._scaler.scale() if self._scaler.holds_scaled else None
        if max_norm is not None:
            self._note_clip(seen, float(max_norm))

    def _note_clip(self, norm: Tensor | float, limit: float) -> None:
        row = self.backward_row()
        if row is not None:
            row.clips.append((number_or_copy(norm), limit))

    def _through_scaler(self, entering: bool) -> None:
        """Called around `scaler.step(optimizer)`, which may decline without a hook firing."""
        with self._guard:
            if entering:
                self._attempt()
            elif self.row is not None:
                self.row.was_answered = True

    def _attempt(self) -> None:
        row = self._attempted_row()
        if row is not None and row.gradient is None:
            self.measure("at_step")

    def _attempted_row(self) -> Measures | None:
        if self.row is not None and self.row.attempted:
            self._again(self)
        if self.row is not None:
            self.row.attempted = True
            self._read_settings(self.row)
        return self.row

    def _before_step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        replaced = None
        with self._guard:
            if _inside_backward():
                raise RuntimeError(
                    f"optimizer {self.name!r} steps inside backward, where no gradient is whole: "
                    "its norm, clipping and movement are not recorded"
                )
            within = self._scaler.is_within_step
            self._scaler.steps_directly = not within
            closure = _closure_of(args, kwargs)
            if closure is not None:
                if not within:
                    self._attempted_row()
                replaced = self._watch_closure(closure, args, kwargs)
            elif not within:
                self._attempt()
            if self.row is not None:
                self._each(Movement.theta)
        return replaced

    def _watch_closure(self, closure: Callable[[], Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The loss and gradient of a closure optimizer are those of its closure's first evaluation."""
        row = self.row
        evaluations = 0

        def watched(*inner: Any, **named: Any) -> Any:
            nonlocal evaluations
            self._evaluations = evaluations
            try:
                result = closure(*inner, **named)
            finally:
                self._evaluations = None
            if evaluations == 0 and row is not None and row is self.row:
                with self._guard:
                    if row.loss is None and result is not None:
                        row.loss = number_or_copy(result)
                    if row.gradient is None:
                        self.measure("at_step")
            evaluations += 1
            return result

        if "closure" in kwargs:
            return args, {**kwargs, "closure": watched}
        return (args[0], watched, *args[2:]), kwargs

    def _after_step(self, found_inf: Tensor | None) -> None:
        with self._guard:
            if self.row is None:
                return
            self.row.fired = True
            self.row.found_inf = found_inf
            if _inside_backward():
                self.row.attempted = True
                return
            self.row.movement = self._each(Movement.measure)
            self.row.movement_is_exact = self._movements.finish(self.row.layers)
            self.row.maximize = bool(self.optimizer.param_groups[0].get("maximize", False))

    def _each(self, part: Callable[[Movement], Any]) -> Any:
        return self._movements.each(part, self._owned.now(), self.is_deep)

    def _read_settings(self, row: Measures) -> None:
        """What the row runs under, before scheduler and scaler move."""
        lr = self.optimizer.param_groups[0].get("lr")
        row.lr = None if lr is None else number_or_copy(lr)
        row.scale = self._scaler.scale()


def _inside_backward() -> bool:
    """Whether this runs within a backward pass, as an optimizer does that a gradient hook steps."""
    return torch._C._current_graph_task_id() != -1


def number_or_copy(value: Tensor | float) -> Tensor | float:
    """A number where the host has it, else a detached copy: the loop may change its tensor before it is read."""
    if not isinstance(value, Tensor):
        return float(value)
    return number(value) if value.device.type == "cpu" else value.detach().clone()


def _closure_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """The closure given to `optimizer.step`; hooks see the optimizer itself as the first argument."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    return closure if callable(closure) else None
