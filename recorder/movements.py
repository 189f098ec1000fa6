"""Which buffers measure a row's movement: a sample, all coordinates on a deep row, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from time import perf_counter
from typing import Any

from recorder.layers import Layers, layer_gradients
from recorder.movement import Movement
from recorder.probes import GradientNorms, Parameter, Vector


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
        self._held: tuple[Movement, Movement | None] | None = None

    def gradient(self, parameters: Sequence[Parameter], deep: bool) -> None:
        """Keep the gradient as it is before clipping."""
        movement, detail = self._for_row(parameters, deep)
        self._take(movement, detail, Movement.gradient)

    def theta(self, parameters: Sequence[Parameter], deep: bool) -> None:
        """Keep the parameters right before a step."""
        movement, detail = self._held = self._for_row(parameters, deep)
        if detail is None:
            movement.theta()
        else:
            self._take(movement, detail, partial(Movement.theta, detailed=True))

    def measure(self, layers: Layers | None) -> tuple[Vector, bool] | None:
        """What moved since `theta`: see `Movement.measure`, and whether it is exact; details go to the layers.

        None where no parameters were kept, as after a step that began before the row did.
        """
        if self._held is None:
            return None
        (movement, detail), self._held = self._held, None
        measured = self._take(movement, detail, Movement.measure)
        if layers is not None and detail is not None:
            started = perf_counter()
            layers.observe_movement(detail)
            self.deep_seconds += perf_counter() - started
        return measured, movement.is_exact

    def _take(self, movement: Movement, detail: Movement | None, part: Callable[[Movement], Any]) -> Any:
        """Run one part on a row's buffers, and return what it gives for the update columns."""
        if detail is None or detail is self._sample:
            return part(movement)
        started = perf_counter()
        detailed = part(detail)
        self.deep_seconds += perf_counter() - started
        return detailed if movement is detail else part(movement)

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
