"""Lightning's optimizers and their schedulers by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recorder.flight import FlightRecorder


class Optimizers:
    """Those of one training. Without names a single one is `optimizer`, several are `optimizer_0` and so on.

    Raises ValueError where there are not as many names as optimizers.
    """

    def __init__(self, trainer: Any, names: Sequence[str]) -> None:
        optimizers = trainer.optimizers
        if names and len(names) != len(optimizers):
            raise ValueError(f"names has {len(names)} names, and there are {len(optimizers)} optimizers")
        numbered = ["optimizer"] if len(optimizers) == 1 else [f"optimizer_{n}" for n in range(len(optimizers))]
        self.named: dict[str, Any] = dict(zip(names or numbered, optimizers, strict=True))
        self._names = {id(optimizer): name for name, optimizer in self.named.items()}
        self.schedulers = self._schedulers_of(trainer)

    def name_of(self, optimizer: Any) -> str | None:
        """The name of an optimizer, which Lightning may have wrapped."""
        bare = getattr(optimizer, "optimizer", optimizer)
        return self._names.get(id(optimizer), self._names.get(id(bare)))

    def see_schedulers(self, recorder: FlightRecorder, trainer: Any) -> None:
        """Callbacks may put another scheduler in the place of the first, as StochasticWeightAveraging does."""
        with recorder.guard:
            now = self._schedulers_of(trainer)
            for name, scheduler in now.items():
                if scheduler is not self.schedulers.get(name):
                    recorder.replace_scheduler(name, scheduler)
            self.schedulers = now

    def _schedulers_of(self, trainer: Any) -> dict[str, Any]:
        """Each optimizer's, by name."""
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        by_name = {self._names.get(id(each.optimizer)): each for each in schedulers}
        return {name: each for name, each in by_name.items() if name is not None}
