"""Channel: the face of one optimizer to the recorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch.amp import GradScaler
from torch.optim import Optimizer

from recorder.channel.steps import Steps
from recorder.clocks import Clocks, StepWatch, scheduler_position, scheduler_stride
from recorder.guard import Guard
from recorder.measures import Measures
from recorder.movements import Movements
from recorder.owned import OwnedParameters
from recorder.scaling import ScalerWatch


class Channel(Steps):
    """Fills `row`, the `Measures` of one optimizer, while a transition is open.

    `attempting` is called before each step, when loss and gradient are known and nothing has moved. `again` is called
    when the optimizer steps a second time within one transition: it must store the finished row and open the next one.
    """

    def __init__(
        self,
        name: str,
        optimizer: Optimizer,
        *,
        names: Callable[[], dict[int, str]],
        reduced: Callable[[], str | None],
        scaler: GradScaler | None,
        scheduler: Any,
        max_norm: float | None,
        deep_parameters: Sequence[str],
        guard: Guard,
        attempting: Callable[[Channel], None],
        again: Callable[[Channel], None],
    ) -> None:
        super().__init__()
        self.name = name
        self.optimizer = optimizer
        self.scaler = scaler
        self.max_norm = max_norm
        self.clocks = Clocks()
        self.follow(scheduler)
        self.gradient_dtypes = {}
        self._owned = OwnedParameters(optimizer, names)
        self._movements = Movements(deep_parameters)
        self._guard = guard
        self._reduced = reduced
        self._attempting = partial(attempting, self)
        self._again = partial(again, self)
        self._scaler = ScalerWatch(scaler, optimizer, self._through_scaler)
        self._watch = StepWatch(optimizer, self._before_step, self._after_step)

    def follow(self, scheduler: Any) -> None:
        """Count this scheduler's steps from here on; what was counted stays counted."""
        self.scheduler = scheduler
        self.scheduler_seen = scheduler_position(scheduler)
        self.scheduler_stride = scheduler_stride(scheduler)
        if scheduler is not None:
            self.clocks.scheduled = self.clocks.scheduled or 0

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

    def owns(self, tensors: set[int]) -> bool:
        """Whether one of these tensors, told by their ids, is among the optimizer's parameters."""
        return any(id(p) in tensors for group in self.optimizer.param_groups for p in group["params"])
