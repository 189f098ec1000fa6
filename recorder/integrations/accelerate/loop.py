"""What takes the place of an Accelerator's own methods while its loop is recorded, and the rows that they open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import Tensor
from torch.nn import Module

from recorder.fingerprint import Fingerprint
from recorder.flight import FlightRecorder
from recorder.integrations.accelerate.places import Place
from recorder.integrations.clipping import clip_by_norm, measured
from recorder.transition import Transition

_NO_FORWARD = (
    "accelerator.backward came before accelerator.accumulate(model): the rows open at the backward pass, and what is "
    "seen in the forward (precision, activation_absmax, first_nonfinite_module) is not recorded"
)


class Loop:
    """Opens and closes the rows of one Accelerator's loop. Each method named as one of its gives what replaces it."""

    def __init__(self, accelerator: Accelerator, recorder: FlightRecorder) -> None:
        self._accelerator = accelerator
        self._recorder = recorder
        self._declared: Transition | None = None
        self._implied: Transition | None = None
        self._place = Place()
        self._models: tuple[Module, ...] = ()
        self._loading: str | None = None
        self._loaded: str | None = None
        self._arrived: Fingerprint | None = None

    def accumulate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def accumulate(*models: Module) -> Iterator[None]:
            with original(*models):
                t = self._recorder.current
                self._models = models
                if t is None or t is self._implied:
                    self._declared = self._begin()
                elif not self._accelerator.sync_gradients:
                    t.skip("accumulating")  # the loop's own row, which was opened before this was known
                failed: BaseException | None = None
                try:
                    yield
                except BaseException as error:
                    failed = error
                    raise
                finally:
                    self._models = ()
                    if self._recorder.current is self._declared:
                        self._recorder.end(failed)

        return accumulate

    def backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(loss: Tensor, **kwargs: Any) -> Any:
            for t in self._whose(self._row_of_backward()):
                t.observe_loss(loss)
            return original(loss, **kwargs)

        return backward

    def clip_grad_norm_(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float, norm_type: float = 2) -> Any:
            t = self._recorder.current
            if t is None:
                return original(parameters, max_norm, norm_type)
            return clip_by_norm(t, original, parameters, max_norm, norm_type=norm_type)

        return clip_grad_norm_

    def clip_grad_value_(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_value_(parameters: Iterable[Tensor], clip_value: float) -> Any:
            t = self._recorder.current
            tensors = parameters if t is None else measured(t, parameters)[0]
            return original(tensors, clip_value)

        return clip_grad_value_

    def end_training(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def end_training() -> Any:
            self._recorder.close()
            return original()

        return end_training

    def load_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def load_state(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._loaded, self._loading = self._loading, None
            self._place.restored()
            self._arrived = self._recorder.fingerprint()
            return result

        return load_state

    def saving(self, _models: Any, _weights: Any, output_dir: str) -> None:
        """A checkpoint is known by the name of its directory."""
        self._recorder.checkpoint(Path(output_dir).name, sampler=self._place.following())

    def loading(self, _models: Any, input_dir: str) -> None:
        """The state comes back after this, if it does, and the position in the data with the first row that follows."""
        self._loading = Path(input_dir).name

    def _row_of_backward(self) -> Transition:
        """The open row, or a new one where the last backward pass of an implied row has been stepped or ended."""
        t = self._recorder.current
        if t is None or (t is self._implied and (t.attempted or not self._shares_rows)):
            self._recorder.note_once(_NO_FORWARD)
            t = self._implied = self._begin(after_forward=True)
        return t

    @property
    def _shares_rows(self) -> bool:
        """Whether several optimizers step in turn after backward passes of their own, as in a GAN."""
        return len(self._recorder.optimizers) > 1

    def _whose(self, t: Transition) -> list[Transition]:
        """Of several optimizers those of the models that `accumulate` was given: the loss is theirs alone."""
        if not self._shares_rows or not self._models:
            return [t]
        owners = t.owning([parameter for model in self._models for parameter in model.parameters()])
        return owners if 0 < len(owners) < len(self._recorder.optimizers) else [t]

    def _begin(self, after_forward: bool = False) -> Transition:
        name = self._batch_id()
        if self._loaded is not None:
            place = None if name is None else self._place.here()
            self._recorder.return_to(self._loaded)
            self._recorder.resumed(self._loaded, sampler=place, now=self._arrived)
            self._loaded = self._arrived = None
        accumulating = not self._accelerator.sync_gradients
        return self._recorder.begin(name, accumulating=accumulating, after_forward=after_forward)

    def _batch_id(self) -> str | None:
        """None also where the loader cannot be asked."""
        with self._recorder.guard:
            return self._place.begin(self._accelerator.gradient_state.active_dataloader, self._models)
        return None
