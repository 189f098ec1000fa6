"""Nested values as plain JSON beside a flat set of tensors, and back: what a capture is stored as, without pickle.

JSON holds what it can as it is. The rest is an object with one key that starts with a `$`: `$tensor` names a tensor,
`$array` one that was a numpy array, `$tuple` and `$items` (a mapping whose keys are not all plain texts) hold lists,
`$float` a number that JSON has not, `$left_out` the type of a value that could not be kept. A named tuple comes back as
a tuple, a mapping of any type as a dict, a tensor of a subclass as a plain one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recorder.store.values import clean_text

_DEEPEST = 32
_WIDEST = 1024  # bits of a whole number: a generator's state needs 128, and Python writes no more than 4,300 digits
_ATOMS = (bool, int, float, str, type(None))
_PLAIN = {bool, str, type(None)}
# What safetensors writes and reads again.
_STORED = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
    torch.float8_e4m3fn, torch.float8_e5m2,
}  # fmt: skip


def split(value: Any, at: str = "") -> tuple[Any, dict[str, Tensor], list[str]]:
    """The JSON of a value, its tensors by their place in it, and the places of what was left out, with its type."""
    tensors: dict[str, Tensor] = {}
    left_out: list[str] = []
    return _split(value, at, 0, tensors, left_out), tensors, left_out


def join(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The value that `split` took apart, None where it left something out. ValueError for no such JSON."""
    if isinstance(plain, list):
        return [join(item, tensors) for item in plain]
    if not isinstance(plain, Mapping):
        return plain
    if len(plain) == 1:
        (key, inner), *_ = plain.items()
        if key in ("$tensor", "$array"):
            if inner not in tensors:
                raise ValueError(f"names a tensor that is not there: {inner!r:.100}")
            return tensors[inner] if key == "$tensor" else tensors[inner].numpy()
        if key == "$tuple":
            return tuple(join(item, tensors) for item in inner)
        if key == "$items":
            return {join(name, tensors): join(item, tensors) for name, item in inner}
        if key == "$float":
            return float(inner)
        if key == "$left_out":
            return None
    return {name: join(item, tensors) for name, item in plain.items()}


def copied(value: Any, depth: int = 0) -> Any:
    """The same with tensors and arrays of its own, as far down as `split` goes."""
    if type(value) in _ATOMS or depth >= _DEEPEST:
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (list, tuple)):
        items = [item if type(item) in _ATOMS else copied(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, Mapping):
        return {key: copied(item, depth + 1) for key, item in value.items()}
    return value


def _is_plain(value: Any) -> bool:
    """Whether JSON holds a value as it is: the quick answer, for lists of a million of them."""
    kind = type(value)
    return kind in _PLAIN or (kind is float and isfinite(value)) or (kind is int and -(2**63) <= value < 2**63)


def _split(value: Any, at: str, depth: int, tensors: dict[str, Tensor], left_out: list[str]) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        return _split_array(value, at, tensors, left_out)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return {"$float": str(float(value))}
    if isinstance(value, _ATOMS) and not (isinstance(value, int) and value.bit_length() > _WIDEST):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping) and all(isinstance(key, _ATOMS) for key in value):
        items = [
            (_split(key, at, depth, tensors, left_out), _split(item, f"{at}/{key}", depth + 1, tensors, left_out))
            for key, item in value.items()
        ]
        if all(isinstance(key, str) and not key.startswith("$") for key, _ in items):
            return dict(items)
        return {"$items": [list(pair) for pair in items]}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        inner = [
            item if _is_plain(item) else _split(item, f"{at}/{index}", depth + 1, tensors, left_out)
            for index, item in enumerate(value)
        ]
        return inner if isinstance(value, list) else {"$tuple": inner}
    return _leave_out(value, at, left_out)


def _split_array(value: Tensor | np.ndarray[Any, Any], at: str, tensors: dict[str, Tensor], left_out: list[str]) -> Any:
    plain = _plain_array(value) if isinstance(value, np.ndarray) else _plain_tensor(value)
    if plain is None:
        return _leave_out(value, at, left_out)
    at = clean_text("place", at)
    while at in tensors:  # a key may hold a slash, and 1 and "1" are two keys
        at += "'"
    tensors[at] = plain
    return {"$array" if isinstance(value, np.ndarray) else "$tensor": at}


def _plain_array(value: np.ndarray[Any, Any]) -> Tensor | None:
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8 or isinstance(value, np.ma.MaskedArray):
        return None
    return torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))


def _plain_tensor(value: Tensor) -> Tensor | None:
    """Itself, detached; None for one whose numbers are not simply its own: distributed, sparse, quantised, deferred."""
    own_dispatch = type(value).__torch_dispatch__ is not Tensor.__torch_dispatch__
    if own_dispatch or torch._C._functorch.is_functorch_wrapped_tensor(value) or value.dtype not in _STORED:
        return None
    if value.layout is not torch.strided or value.is_meta or value.is_quantized or value.is_nested:
        return None
    return value.detach().as_subclass(Tensor)


def _leave_out(value: Any, at: str, left_out: list[str]) -> Any:
    kind = type(value).__name__
    what = f"{kind} of {value.dtype}" if isinstance(value, (Tensor, np.ndarray)) else kind
    left_out.append(f"{clean_text('place', at)} ({what})")
    return {"$left_out": kind}
