"""What is seen of one optimizer's steps: what they run under, that they were attempted, what they moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from recorder.channel.closures import closure_of, with_closure
from recorder.channel.gradients import Gradients
from recorder.measures import Measures
from recorder.readings import number_or_copy

MOST_GROUPS = 9  # whose learning rates are recorded: of hundreds a row would be hardly anything else


class Steps(Gradients):
    """Fills the columns of the attempt and of the movement. `_attempting` and `_again` are as for `Channel`."""

    name: str
    _attempting: Callable[[], None]
    _again: Callable[[], None]

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
        self._attempting()

    def _attempted_row(self) -> Measures | None:
        if self.row is not None and self.row.attempted:
            self._again()
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
            closure = closure_of(args, kwargs)
            if closure is not None:
                row = self.row if within else self._attempted_row()
                replaced = with_closure(self._watched(closure, row), args, kwargs)
            elif not within:
                self._attempt()
            if self.row is not None:
                self._movements.theta(self._owned.now(), self.is_deep)
        return replaced

    def _watched(self, closure: Callable[..., Any], row: Measures | None) -> Callable[..., Any]:
        """The loss and gradient of a closure optimizer are those of its closure's first evaluation."""
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
                    self._attempting()
            evaluations += 1
            return result

        return watched

    def _after_step(self, found_inf: Tensor | None) -> None:
        with self._guard:
            row = self.row
            if row is None:
                return
            row.fired = True
            row.found_inf = None if found_inf is None else number_or_copy(found_inf)
            if _inside_backward():
                row.attempted = True
                return
            moved = self._movements.measure(row.layers)
            if moved is not None:
                row.movement, row.movement_is_exact = moved
                row.update_scope = self._owned.scope or self._reduced()
            row.maximize = bool(self.optimizer.param_groups[0].get("maximize", False))

    def _read_settings(self, row: Measures) -> None:
        """What the row runs under, before scheduler and scaler move."""
        given = [group["lr"] for group in self.optimizer.param_groups[:MOST_GROUPS] if "lr" in group]
        rates = [rate if type(rate) is float else number_or_copy(rate) for rate in given]
        row.lr, row.group_lrs = rates[0] if rates else None, rates[1:]
        row.scale = self._scaler.scale()


def _inside_backward() -> bool:
    """Whether this runs within a backward pass, as an optimizer does that a gradient hook steps."""
    return torch._C._current_graph_task_id() != -1
