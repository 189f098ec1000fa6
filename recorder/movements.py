"""Which buffers measure a row's movement: a sample, all coordinates on a deep row, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Any

from recorder.layers import Layers, layer_gradients
from recorder.movement import Movement
from recorder.probes import GradientNorms, Parameter


class Movements:
    """The buffers of one optimizer, made when they are first needed and again when its parameters change.

    `chosen` are patterns of parameter names that a deep row looks at, all where there are none. `deep_seconds` adds up
    the time of what an ordinary row would not have done.
    """

    def __init__(self, chosen: Sequence[str]) -> None:
        self.deep_seconds = 0.0
        self._chosen = chosen
        self._sample: Movement | None = None
        self._exact: Movement | None = None
        self._current: tuple[Movement, Movement | None] | None = None

    def each(self, part: Callable[[Movement], Any], parameters: Sequence[Parameter], deep: bool) -> Any:
        """Run one part of a movement on this row's buffers, and return what it gives for the update columns."""
        movement, detail = self._current = self._for_row(parameters, deep)
        if detail is None or detail is self._sample:
            return part(movement)
        started = perf_counter()
        detailed = part(detail)
        self.deep_seconds += perf_counter() - started
        return detailed if movement is detail else part(movement)

    def finish(self, layers: Layers | None) -> bool:
        """After a step was measured: hand its details to the layers, and say whether the update columns are exact."""
        assert self._current is not None
        movement, detail = self._current
        if layers is not None and detail is not None:
            started = perf_counter()
            layers.observe_movement(detail)
            self.deep_seconds += perf_counter() - started
        movement.forget_gradient()
        return movement.is_exact

    def layer_gradients(self, gradient: GradientNorms) -> Layers:
        """The chosen gradients of a deep row."""
        started = perf_counter()
        layers = layer_gradients(gradient, self._is_chosen)
        self.deep_seconds += perf_counter() - started
        return layers

    def _for_row(self, parameters: Sequence[Parameter], deep: bool) -> tuple[Movement, Movement | None]:
        """Buffers for the update columns and for a deep row's layers: the same where it looks at the whole model."""
        if self._sample is None or not self._sample.covers(parameters):
            self._sample, self._exact = Movement(parameters), None
        if not deep:
            return self._sample, None
        if self._sample.is_exact and not self._chosen:
            return self._sample, self._sample
        if self._exact is None:
            self._exact = Movement([p for p in parameters if self._is_chosen(p)], limit=None)
        return (self._sample if self._chosen else self._exact), self._exact

    def _is_chosen(self, parameter: Parameter) -> bool:
        return not self._chosen or any(fnmatchcase(parameter.name, pattern) for pattern in self._chosen)
