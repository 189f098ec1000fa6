"""Captures: looks at each row before its step runs, and keeps what is needed to feed its batch again."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recorder.capture.contents import States, unstored, within_limits
from recorder.capture.directory import write_capture
from recorder.capture.generators import Generators
from recorder.capture.nested import copied, split
from recorder.capture.policy import CapturePolicy
from recorder.capture.staging import Staging
from recorder.captured import captures_of
from recorder.guard import Guard, describe_error
from recorder.probes import absmax
from recorder.store import RunWriter
from recorder.store.capture_names import capture_path, drop_unfinished
from recorder.watch import Watch

_MOST_OUTSTANDING = 2


class NoCaptures:
    """Where no policy asks for captures."""

    wanted = False

    def begin(self, row: int) -> None: ...

    def see_batch(self, batch: Any, batch_id: str | None) -> None: ...

    def awaits(self, row: int, optimizer: str) -> bool:
        return False

    def reason(self, facts: Mapping[str, Any]) -> str | None:
        return None

    def nonfinite_input(self) -> float | None:
        return None

    def step_follows(self) -> None: ...

    def capture(self, why: str, facts: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class Captures(NoCaptures):
    """One recorder's captures. `states` are what is captured of each optimizer's own: it, its scheduler, its scaler."""

    wanted = True

    def __init__(
        self,
        policy: CapturePolicy,
        writer: RunWriter,
        model: torch.nn.Module,
        states: States,
        guard: Guard,
        rank: int = 0,
    ) -> None:
        self._rank = rank
        self._policy = policy
        self._writer = writer
        self._model = model
        self._states = states
        self._guard = guard
        # One optimizer's losses are no measure for another's.
        self._watches = {name: Watch(policy.own_triggers(), [], 1, guard) for name in states["optimizers"]}
        self._staging = Staging()
        self._generators = Generators()
        self._is_prepared = False
        with guard:
            drop_unfinished(writer.path, rank)
        self._taken = set(captures_of(writer.path, rank))
        self._background = ThreadPoolExecutor(1, thread_name_prefix="recorder-capture")
        self._writing: list[Future[None]] = []
        self._batches: deque[dict[str, Any]] = deque(maxlen=policy.batches + 1)
        self._before: dict[str, Any] = {}
        self._row = -1
        self._considered: set[tuple[int, str]] = set()
        self._has_stepped = False
        self._pid = os.getpid()

    def begin(self, row: int) -> None:
        """Keep what the forward of this row will change: random state and buffers."""
        self._row, self._before, self._has_stepped = row, {}, False
        self._considered.clear()
        if not self._policy.contents:
            for held in self._batches:
                held.pop("batch", None)
        with self._guard:
            if row > 0 and not self._is_prepared:  # the optimizers have a state only after their first step
                self._is_prepared = True
                self._staging.prepare(self._split()[1])
        with self._guard:
            self._before["buffers"] = {name: buffer.detach().clone() for name, buffer in self._model.named_buffers()}
            self._before["rng"] = self._generators.states()

    def see_batch(self, batch: Any, batch_id: str | None) -> None:
        """Keep the batch of this row: a copy, for the loop may go on to change its own."""
        if not self._batches and (lacking := unstored(split(batch, "batch")[2])):
            self._writer.event(
                "note", row=self._row, text=f"captures will lack part of each batch: {'; '.join(lacking)}"
            )
        held = {"row": self._row, "batch_id": batch_id, "batch": copied(batch)}
        if self._batches and self._batches[-1]["row"] == self._row:
            self._batches.pop()
        self._batches.append(held)

    def awaits(self, row: int, optimizer: str) -> bool:
        """Whether a row is still to be looked at: it is once, before its step, or at its end where it has none."""
        return (row, optimizer) not in self._considered

    def reason(self, facts: Mapping[str, Any]) -> str | None:
        """Why the row of these columns is to be captured; None where it trips no trigger."""
        self._considered.add((facts["row"], facts["optimizer"]))
        begun = self._watches[facts["optimizer"]].see(facts)
        return "; ".join(str(reason) for _, reason in begun) or None

    def nonfinite_input(self) -> float | None:
        """The largest magnitude in the batch of this row, where a NaN or Inf is in it: else its inputs are not known.

        A batch may hold targets beside them, whose size says nothing of theirs.
        """
        if not self._batches or self._batches[-1]["row"] != self._row:
            return None
        largest = absmax(split(self._batches[-1].get("batch"))[1].values())
        value = None if largest is None else float(largest)
        return None if value is None or isfinite(value) else value

    def step_follows(self) -> None:
        """From here on the parameters are no longer those that the forward had."""
        self._has_stepped = True

    def capture(self, why: str, facts: Mapping[str, Any]) -> None:
        """Copy the state now and have it written; an event says where, or why not."""
        if os.getpid() != self._pid:  # a forked child has neither the run nor the thread that writes
            return
        row, path = int(facts["row"]), capture_path(self._writer.path, facts["row"], self._rank)
        refusal = self._refusal(path)
        if refusal is not None:
            self._writer.event("capture", row=row, why=why, left_out=refusal)
            return
        plain, tensors, left_out = self._split()
        if self._has_stepped:
            left_out.append("the state before the forward: a step had been attempted in this transition already")
        # While the memory kept for it is still being written from, a copy needs memory of its own.
        staging = Staging() if self._outstanding() else self._staging
        held = staging.copy(tensors)
        told = split({**{name: value for name, value in facts.items() if value is not None}, "why": why})[0]
        self._taken.add(path)
        self._writing.append(self._background.submit(self._write, path, told, plain, held, left_out))

    def close(self) -> None:
        """Return once what was captured is written."""
        self._background.shutdown(wait=True)

    def _refusal(self, path: Path) -> str | None:
        if path in self._taken:
            return "it was captured already"
        if len(self._taken) >= self._policy.most:
            return f"{len(self._taken)} captures are as many as the policy allows"
        return "the captures before it are still being written" if self._outstanding() >= _MOST_OUTSTANDING else None

    def _outstanding(self) -> int:
        self._writing = [writing for writing in self._writing if not writing.done()]
        return len(self._writing)

    def _write(self, path: Path, facts: Any, plain: Any, tensors: dict[str, Tensor], left_out: list[str]) -> None:
        with self._guard:
            told = {"path": path.relative_to(self._writer.path).as_posix()}
            try:
                write_capture(path, facts, plain, tensors, left_out)
            except Exception as error:  # noqa: BLE001  # whatever it was, the event says that there is no capture
                self._taken.discard(path)
                self._guard.report(error)
                told = {"left_out": f"it could not be written ({describe_error(error)})"}
            self._writer.event("capture", row=facts["row"], why=facts["why"], **told)

    def _split(self) -> tuple[Any, dict[str, Tensor], list[str]]:
        held, seen = list(self._batches), dict(self._before)
        if held and held[-1]["row"] == self._row:
            seen["batch"] = held.pop()["batch"]
        return within_limits(
            self._policy, self._model, self._states, {**seen, "earlier": held[-self._policy.batches :]}
        )
