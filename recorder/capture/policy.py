"""When a capture is taken, and how much it may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recorder import settings
from recorder.trigger import Trigger, departs, nonfinite


@dataclass(frozen=True)
class CapturePolicy:
    """Before each step the policy reads the row's loss and gradient norm: on a device that is one wait a step.

    `triggers` decide (None: a loss or gradient that is not finite, a loss or norm that leaves its last 64 rows); a row
    that trips right after another belongs to the same occasion. A run holds `most` captures of up to `max_bytes` each.
    A model of more than `max_parameters` is captured without its parameters and optimizer state. `batches` is how
    many of the last batches are kept, as neighbours to compare with: contents and all, or with `contents=False` their
    ids alone. `optimizer_state` leaves out what costs an Adam two thirds of the copy.
    """

    triggers: Sequence[Trigger] | None = None
    most: int = 8
    max_bytes: int = 4 * 2**30
    max_parameters: int = 200_000_000
    batches: int = 4
    contents: bool = True
    optimizer_state: bool = True

    def __post_init__(self) -> None:
        for name, least in (("most", 1), ("max_bytes", 1), ("max_parameters", 0), ("batches", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"CapturePolicy({name}=) must be a whole number of at least {least}, not {value!r}")
        if self.triggers is not None:
            object.__setattr__(self, "triggers", settings.triggers_before_the_step(self.triggers))

    def own_triggers(self) -> tuple[Trigger, ...]:
        """Triggers with a state of their own, for one recorder."""
        if self.triggers is None:
            return (nonfinite(), departs("loss"), departs("grad_norm"))
        return tuple(self.triggers)
