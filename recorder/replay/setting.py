"""What is replayed: the user's model and loss, put back into the captured state."""

from __future__ import annotations

import copy
import importlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recorder.capture import Capture, Generators
from recorder.guard import describe_error

Loss = Callable[[torch.nn.Module, Any], Tensor]


class ReplayError(Exception):
    """A replay cannot be made: one line that says what is wrong and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


def printable(text: str) -> str:
    """Without what a terminal would obey, or cannot show: names and texts of a capture may be anyone's."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@dataclass(frozen=True)
class Built:
    """What the user's entry gives: a model, the loss of a batch on it, and, if it can, a batch that was never seen.

    `owned` names the parameters whose gradient was measured, those of one optimizer; None: all.
    """

    model: torch.nn.Module
    loss: Loss
    fresh: Callable[[], Any] | None = None
    owned: frozenset[str] | None = None

    @property
    def device(self) -> torch.device:
        return next((p.device for p in self.model.parameters()), torch.device("cpu"))

    @property
    def dtype(self) -> torch.dtype:
        """Type of its parameters."""
        return next((p.dtype for p in self.model.parameters() if p.is_floating_point()), torch.float32)

    def copy(self) -> Built:
        """The same with a model of its own. ReplayError where the model cannot be copied."""
        try:
            return Built(copy.deepcopy(self.model), self.loss, self.fresh, self.owned)
        except Exception as error:  # the user's model may raise anything
            raise ReplayError(f"the entry's model cannot be copied ({in_one_line(error)})") from error


def in_one_line(error: BaseException) -> str:
    """Type and first line of an exception."""
    return next(iter(describe_error(error).splitlines()), "")


def load_entry(entry: str) -> Built:
    """Call `package.module:function`, found from the working directory too. ReplayError where it gives no model."""
    module, _, name = entry.partition(":")
    if not module or not name:
        raise ReplayError(f"{entry!r} names no function; write package.module:function")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's module does
        where = "it is looked for from the working directory and among what is installed"
        raise ReplayError(f"{module} of --entry cannot be imported ({in_one_line(error)}); {where}") from error
    else:
        given = _called(imported, name, entry)
    finally:
        if here in sys.path:
            sys.path.remove(here)
    if not (isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], torch.nn.Module)):
        raise ReplayError(
            f"{entry} must return (model, loss) or (model, loss, fresh_batch), not {type(given).__name__}"
        )
    for what, function in zip(("loss", "fresh_batch"), given[1:], strict=False):
        if not callable(function):
            raise ReplayError(f"{entry} returns a {what} that is no function but a {type(function).__name__}")
    return Built(*given)


def _called(module: ModuleType, name: str, entry: str) -> Any:
    function = getattr(module, name, None)
    if not callable(function):
        raise ReplayError(f"{entry}: {module.__name__} has no function {name}")
    try:
        return function()
    except (Exception, SystemExit) as error:  # whatever the user's function does
        raise ReplayError(f"{entry} cannot be called without arguments ({in_one_line(error)})") from error


@torch.no_grad()
def restore(built: Built, capture: Capture) -> None:
    """Put parameters, buffers and modes of a capture into the model, in the types they were captured in.

    Raises ReplayError where it has none or they are those of another model.
    """
    contents = capture.contents
    if "parameters" not in contents:
        raise ReplayError(f"the capture of row {capture.row} holds no parameters: {'; '.join(capture.left_out)}")
    _fill("parameter", dict(built.model.named_parameters()), contents["parameters"])
    if "buffers" in contents:
        _fill("buffer", dict(built.model.named_buffers()), contents["buffers"])
    modes = contents.get("modes", {})
    for name, module in built.model.named_modules():
        module.training = bool(modes.get(name, contents.get("training", True)))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put the generators back afterwards to where they were."""
    before = Generators().states()
    try:
        yield
    finally:
        restore_random(before)


def restore_random(state: Mapping[str, Any]) -> None:
    """Set the generators as they were before the forward. Raises ReplayError for no state of theirs."""
    try:
        if "torch" in state:
            torch.set_rng_state(state["torch"])
        if "numpy" in state:
            np.random.set_state(state["numpy"])  # noqa: NPY002  # the generator that was captured
        if "python" in state:
            version, inner, gauss = state["python"]
            random.setstate((version, tuple(inner), gauss))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])
    except Exception as error:  # a damaged state raises whatever it meets first
        raise ReplayError(f"the captured random state cannot be set ({in_one_line(error)})") from error


def _fill(kind: str, own: Mapping[str, Tensor], captured: Mapping[str, Any]) -> None:
    held = {name: tensor for name, tensor in captured.items() if isinstance(tensor, Tensor)}
    missing, unknown = sorted(own.keys() - held.keys()), sorted(held.keys() - own.keys())
    if missing or unknown:
        lacks = [("the capture", missing), ("the model", unknown)]
        which = ", ".join(f"{where} lacks {kind} {names[0]}" for where, names in lacks if names)
        raise ReplayError(f"the entry builds another model than the one captured: {which}")
    for name, tensor in own.items():
        if tensor.shape != held[name].shape:
            shapes = f"{tuple(held[name].shape)} captured, {tuple(tensor.shape)} built"
            raise ReplayError(f"the entry builds another model than the one captured: {kind} {name} is {shapes}")
        if tensor.dtype is not held[name].dtype:
            tensor.data = tensor.data.to(held[name].dtype)
        tensor.copy_(held[name])
