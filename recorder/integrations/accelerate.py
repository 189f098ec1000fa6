"""Accelerate: records a loop that goes through an `Accelerator`, by one line after `prepare`.

    recorder = follow(accelerator, "runs/mlp", model, optimizer, scheduler)

A row opens where `accelerator.accumulate(model)` is entered. In a loop without it a row opens where
`accelerator.backward` is called: too late to see the forward, so its columns are not recorded. A transition that the
loop opens by itself, with `recorder.transition(...)`, is the row.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakSet

from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from recorder.fingerprint import Fingerprint
from recorder.flight import FlightRecorder
from recorder.integrations.clipping import clip_by_norm, measured
from recorder.integrations.loading import length_of
from recorder.integrations.replacing import replaced
from recorder.transition import Transition

try:
    from accelerate import Accelerator
except ImportError as error:
    raise ImportError(
        "recorder.integrations.accelerate needs Accelerate: pip install 'spikeview[accelerate]'"
    ) from error

_NO_FORWARD = (
    "accelerator.backward came before accelerator.accumulate(model): the rows open at the backward pass, and what is "
    "seen in the forward (precision, activation_absmax, first_nonfinite_module) is not recorded"
)

_FOLLOWED: WeakSet[Accelerator] = WeakSet()


def follow(
    accelerator: Accelerator,
    directory: str | PathLike[str],
    model: Module,
    optimizer: Optimizer | Mapping[str, Optimizer],
    scheduler: Any = None,
    **settings: Any,
) -> FlightRecorder:
    """Record what `accelerator` does from here on; `settings` are those of `FlightRecorder`, which is returned.

    Model, optimizer and scheduler are those that `accelerator.prepare` returned, before `load_state`. The run is
    closed by `accelerator.end_training()`, by `recorder.close()`, or with the process.

    Raises ValueError where the accelerator is followed already: its rows would be those of both.
    """
    if accelerator in _FOLLOWED:
        raise ValueError(
            "this accelerator is followed already: close() that recorder first, or follow several models as one "
            "torch.nn.ModuleDict with a dict of optimizers"
        )
    recorder = FlightRecorder(
        directory,
        accelerator.unwrap_model(model),
        optimizer,
        scaler=accelerator.scaler,
        scheduler=scheduler,
        **settings,
    )
    _FOLLOWED.add(accelerator)
    recorder.when_closed(lambda: _FOLLOWED.discard(accelerator))
    loop = _Loop(accelerator, recorder)
    within = ExitStack()
    for name in ("accumulate", "backward", "clip_grad_norm_", "clip_grad_value_", "load_state", "end_training"):
        within.enter_context(replaced(accelerator, name, getattr(loop, name)))
    within.callback(accelerator.register_save_state_pre_hook(loop.saving).remove)
    within.callback(accelerator.register_load_state_pre_hook(loop.loading).remove)
    recorder.when_closed(within.close)
    atexit.register(recorder.close)
    recorder.when_closed(lambda: atexit.unregister(recorder.close))
    return recorder


class _Loop:
    """Opens and closes the rows of one Accelerator's loop. Each method named as one of its gives what replaces it."""

    def __init__(self, accelerator: Accelerator, recorder: FlightRecorder) -> None:
        self._accelerator = accelerator
        self._recorder = recorder
        self._declared: Transition | None = None
        self._implied: Transition | None = None
        self._place: tuple[int, int] | None = None
        self._index = 0
        self._length: int | None = None
        self._models: tuple[Module, ...] = ()
        self._seen: set[int] = set()
        self._loading: str | None = None
        self._loaded: str | None = None
        self._has_loaded = False
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
            self._has_loaded, self._place = True, None
            self._arrived = self._recorder.fingerprint()
            return result

        return load_state

    def saving(self, _models: Any, _weights: Any, output_dir: str) -> None:
        """A checkpoint is known by the name of its directory."""
        ended = self._length is not None and self._index + 1 >= self._length
        place = None if self._place is None else _sampler_at(0 if ended else self._index + 1)
        self._recorder.checkpoint(Path(output_dir).name, sampler=place)

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
            place = None if name is None else _sampler_at(self._index)
            self._recorder.return_to(self._loaded)
            self._recorder.resumed(self._loaded, sampler=place, now=self._arrived)
            self._loaded = self._arrived = None
        accumulating = not self._accelerator.sync_gradients
        return self._recorder.begin(name, accumulating=accumulating, after_forward=after_forward)

    def _is_same_batch(self) -> bool:
        """Whether another model's turn has come: a GAN accumulates for each of its models in turn, over one batch."""
        return bool(self._seen) and bool(self._models) and not self._seen & {id(model) for model in self._models}

    def _batch_id(self) -> str | None:
        """`pass:index` of the batch within the prepared loader that is iterated over; None outside of one."""
        with self._recorder.guard:
            loader = self._accelerator.gradient_state.active_dataloader
            if loader is None or (self._has_loaded and getattr(loader, "use_stateful_dataloader", False)):
                return None  # such a loader goes on by itself where it was, and does not say where
            place = (id(loader), int(loader.iteration))
            skipped = _skipped(loader)
            if place != self._place:
                self._index, self._seen = skipped, set()
            elif not self._is_same_batch():
                self._index, self._seen = self._index + 1, set()
            self._seen |= {id(model) for model in self._models}
            length = length_of(loader)
            # A loader that skips by its sampler is shorter by what it skips.
            self._length = None if length is None else length + skipped
            self._place = place
            return f"{place[1]}:{self._index}"
        return None


def _skipped(loader: Any) -> int:
    """How many batches `skip_first_batches` leaves out of a loader."""
    within = (loader, getattr(loader, "batch_sampler", None))
    return max(int(getattr(each, "skip_batches", 0)) for each in within)


def _sampler_at(index: int) -> str:
    """A new process counts its passes anew, so the place within the pass is all there is to compare."""
    return f"batch {index} of a pass"
