"""Transition: what a training loop tells of one pass over one batch, and asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from recorder.channel import Channel
from recorder.measures import Measures
from recorder.probes import Vector, absmax, loss_quantiles
from recorder.readings import number, number_or_copy

if TYPE_CHECKING:
    from recorder.flight.opening import Opening

# So many losses are sorted on every row.
_FEW = 4096


class Transition:
    """One open transition, as the loop sees it: of all the recorder's optimizers, or of one by `of(name)`."""

    def __init__(self, recorder: Opening, channels: Mapping[str, Channel]) -> None:
        self._recorder = recorder
        self._channels = channels
        self._opened = [channel.opened for channel in channels.values()]

    def __enter__(self) -> Transition:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._recorder.end(error)

    def of(self, name: str) -> Transition:
        """The same face for one optimizer. Raises KeyError for a name the recorder was not given."""
        return Transition(self._recorder, {name: self._channels[name]})

    def owning(self, parameters: Iterable[Tensor]) -> list[Transition]:
        """The same face for each optimizer that owns one of these parameters."""
        tensors = {id(parameter) for parameter in parameters}
        return [self.of(name) for name, channel in self._channels.items() if channel.owns(tensors)]

    def observe_loss(
        self,
        loss: Tensor | float,
        *,
        count: Tensor | int | None = None,
        per_example: Tensor | None = None,
        parts: Mapping[str, Tensor | float] | None = None,
    ) -> None:
        """Record the raw loss of this row: a scalar, as the loop differentiates it.

        `count` is its denominator (valid targets); `per_example` the unreduced losses, for their quantiles (of more
        than 4,096 on deep rows only); `parts` the terms of a composed loss, which become user fields `loss_<name>`.
        """
        guard = self._recorder.guard
        with guard:
            self._recorder.see_precision()
            rows = self._forward_rows()
            value = _scalar(loss, "observe_loss")
            # Of several optimizers those that have stepped are done with their loss, the others wait for theirs.
            twice = bool(rows) and all(row.loss is not None for row in rows)
            for row in rows:
                row.loss = value
            if twice:
                self._recorder.note_once(
                    "observe_loss was called again before a step: the row keeps the last loss. Open a transition for "
                    "each micro-batch (accumulating=True) to keep them all"
                )
        if count is not None:
            with guard:
                for row in rows:
                    row.loss_count = _scalar(count, "observe_loss(count=)")
        if per_example is not None:
            with guard:
                for row in rows:
                    row.loss_quantiles = loss_quantiles(per_example) if self._affords(per_example) else None
        if parts is not None:
            self.record(**{f"loss_{name}": part for name, part in parts.items()})

    def observe_inputs(self, *inputs: Tensor | Iterable[Tensor] | Mapping[str, Tensor]) -> None:
        """Record the largest magnitude among the floating inputs."""
        with self._recorder.guard:
            found = absmax(_tensors(inputs))
            largest = None if found is None else number_or_copy(found)
            for row in self._forward_rows():
                row.input_absmax = largest

    def observe_batch(self, batch: Any) -> None:
        """Keep the batch for a capture: tensors, arrays, numbers and texts in any nesting of dicts, lists and tuples.

        It is what `replay` gives to the loss function. Copied on every row, where the recorder has a capture policy:
        of a row that trips it, a batch that holds a NaN or Inf is told as its largest input.
        """
        with self._recorder.guard:
            self._recorder.see_batch(batch)

    def record(self, **values: Any) -> None:
        """Record the loop's own scalars (domain, seq_len, tokens): columns `user_<name>`.

        A name of the recorder's own, such as `loss`, is kept so too, with a warning: the diagnosis does not read it.
        """
        for name, value in values.items():
            with self._recorder.guard:
                field = _user_value(value, name)
                self._recorder.admit_user_field(name)
                for row in self._rows():
                    row.user[name] = field

    def clip_grad_norm_(self, max_norm: float | None = None) -> Tensor:
        """Unscale unless already done, measure the total norm, clip only what is finite.

        `max_norm` defaults to the recorder's; without either the norm is only measured. Returns the norm before
        clipping, 0-d, in true units. A non-finite gradient is left as it was.
        """
        return self._one("clip_grad_norm_").clip_grad_norm_(max_norm)

    def measure_grad_norm(self) -> None:
        """Measure the norm of the gradients as they are now, in true units, without clipping or unscaling."""
        with self._recorder.guard:
            for channel in self._channels.values():
                channel.measure()

    def observe_grad_norm(self, norm: Tensor | float, max_norm: float | None = None) -> None:
        """Tell the norm that the loop's own clipping returned, and the limit it clipped to.

        Call it right after the clipping: where the gradients are still scaled then, the row says so. After
        `measure_grad_norm()` the measured norm stands, and what is told here is only what the loop clipped by.
        """
        channel = self._one("observe_grad_norm")
        with self._recorder.guard:
            channel.observe_grad_norm(norm, max_norm)

    def observe_clipping(self, max_norm: float) -> None:
        """Tell that the loop clips to `max_norm` by itself, right after `measure_grad_norm()`, and keeps the norm."""
        with self._recorder.guard:
            for channel in self._channels.values():
                channel.observe_clipping(float(max_norm))

    def skip(self, reason: str) -> None:
        """Say that the loop declines this step by itself, for example `skip("gated")`."""
        for row in self._rows():
            row.declared_skip = str(reason)

    @property
    def executed(self) -> bool:
        """Whether a step has executed in this transition, also after it has closed.

        A fused optimizer under a scaler needs one host read. True where the recorder does not know, as after `close()`:
        a loop that asks it before its scheduler then goes on as it would without a recorder.
        """
        rows = [row for opened in self._opened for row in opened]
        if not rows:
            return True
        return any(row.fired and not (row.found_inf is not None and number(row.found_inf)) for row in rows)

    @property
    def attempted(self) -> bool:
        """Whether each optimizer was asked for a step in this transition."""
        return all(any(row.attempted for row in opened) for opened in self._opened)

    @property
    def should_step(self) -> bool:
        """False where the loss or a measured gradient is not finite: for loops without a scaler. One host read."""
        for row in self._rows():
            if row.loss is not None and not isfinite(number(row.loss)):
                return False
            if row.gradient is not None and _any(row.gradient.nonfinite):
                return False
        return True

    def _affords(self, per_example: Tensor) -> bool:
        """Sorting many losses is left to deep rows."""
        return 0 < per_example.numel() <= _FEW or any(channel.is_deep for channel in self._channels.values())

    def _rows(self) -> list[Measures]:
        return [channel.row for channel in self._channels.values() if channel.row is not None]

    def _forward_rows(self) -> list[Measures]:
        rows = [channel.forward_row() for channel in self._channels.values()]
        return [row for row in rows if row is not None]

    def _one(self, method: str) -> Channel:
        if len(self._channels) != 1:
            names = ", ".join(self._channels)
            raise ValueError(f"{method} needs one optimizer: use t.of(name).{method}(...) with one of {names}")
        return next(iter(self._channels.values()))


def _any(flags: Vector) -> bool:
    return bool(number(flags.sum())) if isinstance(flags, Tensor) else any(flags)


def _scalar(value: Tensor | float, name: str) -> Tensor | float:
    """A detached 0-d tensor of its own, or a float."""
    if not isinstance(value, Tensor):
        return float(value)
    if value.numel() != 1:
        raise ValueError(f"{name} takes a scalar, not a tensor of shape {tuple(value.shape)}: not recorded")
    if value.is_complex() or value.is_meta:
        kind = "complex" if value.is_complex() else "meta"
        raise TypeError(f"{name} takes a real number that has a value, not a {kind} tensor: not recorded")
    return number_or_copy(value)


def _user_value(value: Any, name: str) -> Any:
    """A field as the run can hold it: a bool, an int of 64 bits, a float, text, a 0-d tensor, or None."""
    if isinstance(value, Tensor):
        whole = value.is_cpu and not value.is_floating_point() and not value.is_complex()
        return value.detach().numpy().item() if whole and value.numel() == 1 else _scalar(value, name)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"record takes numbers, text and scalar tensors; {name} is a {type(value).__name__}: not recorded")


def _tensors(values: Any) -> Iterable[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _tensors(value)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
