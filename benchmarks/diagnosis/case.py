"""A case of the corpus: what is wrong with a loop, from which row on, and what is then true of its recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.diagnosis import loop as sound
from benchmarks.diagnosis.loop import Loop
from benchmarks.diagnosis.models import Batch
from benchmarks.diagnosis.setting import Plan, Setting
from recorder.transition import Transition

DUE, MAY, NONE = "due", "may", "none"


@dataclass(frozen=True)
class Recording:
    """How one recording was made: `onset` is the row at which the fault begins to show, None where there is none."""

    seed: int
    setting: Setting
    rows: int
    onset: int | None
    rank: int = 0


@dataclass(frozen=True)
class Case:
    """One kind of fault, or of healthy run: what is true of its recordings, and how they are made.

    The onset of a recording is the first row whose columns the fault changed, in one of `signals`. `rule` and `checks`
    are what the diagnosis has to say, `perhaps` what is true as well, `unknown` what cannot be told, and for want of
    which columns: one of them has to be named. `names` are texts that the incident's JSON must hold. `incident` says
    whether one is due, may be reported, or would be false. Where a fault `is_gradual` no row shows its onset: an
    incident is due from shortly before it to long behind it.

    The last eight fields are the parts of the loop that the fault replaces, or all of it (`record`). `since_start` says
    that it is there from the first row on; else it begins at the row that the seed chooses, `earliest` or later, with
    `aftermath` rows behind it.
    """

    name: str
    cause: str = ""
    incident: str = DUE
    rule: str | None = None
    signals: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    fits: Callable[[Setting], bool] = lambda setting: True
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_gradual: bool = False
    since_start: bool = False
    earliest: int = 24
    aftermath: int = 6
    rows: tuple[int, int] = (200, 380)
    before: Callable[[Loop], None] = sound.nothing
    number: Callable[[Loop], int | None] = sound.number
    batch: Callable[[Loop, Batch], Batch] = sound.unchanged
    clear: Callable[[Loop], None] = sound.clear
    forward: Callable[[Loop, Batch], Tensor] = sound.forward
    log: Callable[[Loop, Transition, Tensor], None] = sound.log
    step: Callable[[Loop, Transition, Tensor], None] = sound.step
    record: Callable[[Case, Plan, int, Path], Recording] | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether nothing at all is wrong with its runs."""
        return not self.cause

    @property
    def parts(self) -> tuple[Callable[..., Any], ...]:
        """What it puts into the loop."""
        own = (self.before, self.number, self.batch, self.clear, self.forward, self.log, self.step)
        return own if self.record is None else (*own, self.record)
