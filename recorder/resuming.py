"""The part of the recorder's face that has to do with checkpoints: its own state, and whether all came back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch

from recorder.channel import Channel
from recorder.clocks import Clocks
from recorder.fingerprint import PARTS, Fingerprint, differences, fingerprint, position_of
from recorder.remarks import Remarks

_FORMAT = 1
_MOST = 2**63 - 1  # what a column holds


class Resuming(Remarks):
    """Takes a fingerprint of the loop's state at each checkpoint, and compares it after a resume."""

    _model: torch.nn.Module
    _channels: dict[str, Channel]
    _step: int
    _micro_step: int
    _loaded: Fingerprint | None = None

    def checkpoint(self, name: str, *, sampler: Any = None) -> None:
        """Note that the loop has saved its state, and what it was, in a fingerprint that `resumed` compares with.

        `sampler` is the position in the data: text, a number, or anything with a `state_dict`.
        """
        with self.guard:
            self.remark("checkpoint", name=str(name), state=self.state_dict(sampler=sampler))

    def return_to(self, checkpoint: str) -> None:
        """`load_state_dict` with what was noted at a checkpoint of this run; nothing where it has none of that name."""
        with self.guard:
            state = self._logbook.checkpoint_state(str(checkpoint))
            if state is not None:
                self.load_state_dict(state)

    def resumed(
        self,
        from_checkpoint: str,
        restored: Sequence[str] | None = None,
        *,
        sampler: Any = None,
        now: Fingerprint | None = None,
        unmeasured: Sequence[str] = (),
    ) -> None:
        """Note which checkpoint the loop continues from and which of its parts came back.

        Call it when everything is restored and before the first transition. What came back is measured where the
        checkpoint is one of this run, or its `recorder.state_dict()` was loaded. `restored` is the loop's own word:
        model, optimizer, scheduler, scaler, rng, sampler, accumulation. `sampler` is as for `checkpoint`; `now` is a
        `fingerprint()` that was taken earlier; `unmeasured` names parts that have moved on since.
        """
        told: dict[str, Any] = {}
        with self.guard:
            from_checkpoint = str(from_checkpoint)
        with self.guard:
            if restored is not None:
                told["restored"] = self._named_parts(restored)
        with self.guard:
            noted = self._logbook.checkpoint_state(from_checkpoint) or {}
            then = {**(noted.get("fingerprint") or {}), **(self._loaded or {})}
            self._loaded = None
            here = now or self._now(None, accumulating=True)
            if then and here is not None:
                here = self._with_position(here, sampler)
                found = {part: what for part, what in differences(then, here).items() if part not in unmeasured}
                told["came_back"] = [part for part, what in found.items() if not what]
                told["lost"] = {part: "; ".join(what) for part, what in found.items() if what}
        self.remark("resume", from_checkpoint=from_checkpoint, **told)

    def fingerprint(self) -> Fingerprint | None:
        """The state of the loop now, for `resumed(now=)`; None where it cannot be read."""
        return self._now(None, accumulating=True)

    def state_dict(self, *, sampler: Any = None) -> dict[str, Any]:
        """The recorder's clocks and a fingerprint of the loop, as plain values that go into a checkpoint.

        `sampler` is as for `checkpoint`.
        """
        state: dict[str, Any] = {"format": _FORMAT}
        with self.guard:
            self._logbook.flush()
            state |= {
                "step": self._step,
                "micro_step": self._micro_step,
                "clocks": {
                    name: [c.clocks.attempted, c.clocks.executed, c.clocks.scheduled]
                    for name, c in self._channels.items()
                },
                "fingerprint": self._now(sampler, self._is_accumulating()),
            }
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the clocks back to a checkpoint's: they count what the restored parameters have seen.

        Rows that follow are a segment of their own; an open one is closed before. What is no state is noted and left,
        and so are the clocks of an optimizer that it does not know.
        """
        self.end()
        with self.guard:
            saved = _Saved.of(state)
            self._logbook.flush()
            self._logbook.begin_segment()
            for name, channel in self._channels.items():
                if name in saved.clocks:
                    attempted, executed, scheduled = saved.clocks[name]
                    channel.clocks = Clocks(attempted, executed, scheduled if channel.scheduler is not None else None)
                    self._logbook.see_scheduler(channel)
            unknown = [name for name in self._channels if name not in saved.clocks]
            if unknown:
                self.note_once(
                    f"the state that was loaded holds {', '.join(saved.clocks) or 'no optimizer'} and not "
                    f"{', '.join(unknown)}, whose clocks go on as they are"
                )
            self._step, self._micro_step = saved.step, saved.micro_step
            self._loaded = saved.fingerprint

    def end(self, error: BaseException | None = None) -> None:
        """Close the open transition."""
        raise NotImplementedError

    def _now(self, sampler: Any, accumulating: bool) -> Fingerprint | None:
        channels = self._channels.items()
        with self.guard:
            found = fingerprint(
                self._model,
                {name: channel.optimizer for name, channel in channels},
                {name: channel.scheduler for name, channel in channels},
                {name: channel.scaler for name, channel in channels},
                accumulating=accumulating,
            )
            return self._with_position(found, sampler)
        return None

    def _with_position(self, found: Fingerprint, sampler: Any) -> Fingerprint:
        """With the position in the data, where that can be read."""
        with self.guard:
            return found if sampler is None else {**found, "sampler": position_of(sampler)}
        return found

    def _is_accumulating(self) -> bool:
        return any(self._logbook.is_accumulating(channel) for channel in self._channels.values())

    def _named_parts(self, restored: Sequence[str]) -> list[str]:
        """The loop's own word on what it restored; a name that is none of a part's is warned about."""
        names = [restored] if isinstance(restored, str) else [str(name) for name in restored]
        for name in names:
            if name not in PARTS:
                near = get_close_matches(name.lower(), PARTS, 1)
                what = f"resumed(restored=) names {name!r}, which counts for nothing"
                what += f": did you mean {near[0]!r}?" if near else f": the parts are {', '.join(PARTS)}"
                self.note_once(what)
                warnings.warn(what, RuntimeWarning, stacklevel=3)
        return names


@dataclass(frozen=True)
class _Saved:
    """What `state_dict` gave, read back whole before anything is set by it."""

    step: int
    micro_step: int
    clocks: dict[str, tuple[int, int, int | None]]
    fingerprint: Fingerprint

    @classmethod
    def of(cls, state: Any) -> _Saved:
        """Raises ValueError where it is something else."""
        try:
            if state["format"] != _FORMAT:
                raise ValueError(f"format {state['format']!r}")
            clocks = {str(name): _clocks(*counts) for name, counts in state["clocks"].items()}
            taken = {str(part): dict(values) for part, values in (state["fingerprint"] or {}).items()}
            return cls(_whole(state["step"], -_MOST - 1), _whole(state["micro_step"], -1), clocks, taken)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise ValueError(
                "load_state_dict takes what recorder.state_dict() gave, and this is something else: "
                "the clocks go on as they are"
            ) from None


def _clocks(attempted: Any, executed: Any, scheduled: Any) -> tuple[int, int, int | None]:
    return _whole(attempted), _whole(executed), None if scheduled is None else _whole(scheduled)


def _whole(value: Any, least: int = 0) -> int:
    number = int(value)
    if number != value or not least <= number <= _MOST:
        raise ValueError(f"{value!r} is no count")
    return number
