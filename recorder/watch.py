"""What a finished row sets off: triggers, limits, and the detail of the rows before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from recorder.guard import Guard
from recorder.limits import Limit
from recorder.probes import GradientNorms
from recorder.trigger import Row, Trigger

# After a trigger this many rows are deep.
DETAIL_AFTER = 8


class Watch:
    """Looks at every finished row, in order.

    The per-tensor gradient norms of the last `capacity` rows are held, since the row that trips a trigger is the last
    to know; `detail` gives them out once. `ending` is what a limit wants to end the run with.
    """

    def __init__(self, triggers: Sequence[Trigger], limits: Sequence[Limit], capacity: int, guard: Guard) -> None:
        self.tripped = False
        self.ending: Exception | None = None
        self.needs_every_row = bool(limits)
        self._triggers = triggers
        self._limits = limits
        self._guard = guard
        self._tripping: set[str] = set()
        self._held: deque[tuple[int, str, GradientNorms, float]] = deque(maxlen=capacity)
        self._deep_until = 0

    def wants_detail(self, row: int) -> bool:
        """Whether a trigger has asked for this row to be deep."""
        return row < self._deep_until

    def hold(self, row: int, optimizer: str, gradient: GradientNorms, scale: float | None) -> None:
        """Keep the norms, on the host, of a row whose layers are not written; they are still multiplied by `scale`."""
        self._held.append((row, optimizer, gradient, scale or 1.0))

    def detail(self) -> list[dict[str, Any]]:
        """Rows of the layers table from the held norms, which are then let go."""
        rows = []
        for row, optimizer, gradient, scale in self._held:
            factor = 1.0 / scale
            for parameter, norm in zip(gradient.parameters, gradient.norms, strict=True):
                rows.append({"row": row, "optimizer": optimizer, "name": parameter.name, "grad_norm": norm * factor})
        self._held.clear()
        return rows

    def see(self, row: Row) -> list[tuple[str, str]]:
        """Name and reason of each trigger that begins to trip with this row."""
        self.tripped = False
        begun = []
        for trigger in self._triggers:
            try:
                reason = trigger.reason(row)
                if reason is None:
                    # A micro-step has no gradient to be quiet about.
                    if self._tripping and row.get("skip_reason") != "accumulating":
                        self._tripping.discard(trigger.name)
                elif trigger.name not in self._tripping:
                    self._tripping.add(trigger.name)
                    begun.append((trigger.name, reason))
            except Exception as error:  # noqa: BLE001  # a user's own trigger may raise anything
                self._guard.report(error)
        if begun:
            self.tripped = True
            self._deep_until = int(row["row"]) + 1 + DETAIL_AFTER
        for limit in self._limits:
            with self._guard:
                self.ending = self.ending or limit(row)
        return begun
