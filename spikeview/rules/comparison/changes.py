"""What was set otherwise in one of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spikeview.run import Run

SET = ("model", "optimizers", "scaler", "device", "world_size", "seed", "config")


@dataclass(frozen=True)
class Change:
    """A setting of the manifest by its dotted name, and its value in both runs; None where it is missing."""

    name: str
    baseline: str | None
    run: str | None


def changes(baseline: Run, run: Run) -> tuple[Change, ...]:
    """The settings that differ, in the order of the manifest."""
    one, other = (
        dict(_flat({key: each.manifest[key] for key in SET if key in each.manifest})) for each in (baseline, run)
    )
    names = dict.fromkeys([*one, *other])
    return tuple(Change(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, str(value)
