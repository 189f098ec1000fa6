"""Recordings of the corpus, kept in a cache directory for as long as the code that made them stays the same."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import torch

from benchmarks.diagnosis import loop as loop_module
from benchmarks.diagnosis import models, setting
from benchmarks.diagnosis.case import Case, Recording
from benchmarks.diagnosis.loop import Loop, train
from benchmarks.diagnosis.setting import Plan, Setting, plan

RUN, MADE = "run", "made.json"
SHARED = tuple(module.__name__ for module in (models, setting, loop_module))
# Where a module's table of cases begins: a change of their labels records nothing anew.
TABLE = re.compile(r"\n(FAULTS|HEALTHY): tuple")


def recorded(case: Case, seed: int, cache: Path) -> Path:
    """The directory of one recording, recorded now unless the same code has done so before."""
    folder = _folder(case, seed, cache)
    if is_recorded(case, seed, cache):
        return folder
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = record(case, plan(case, seed), seed, folder / RUN)
    (folder / MADE).write_text(json.dumps({"key": code_key(case, seed), **asdict(made)}, indent=1) + "\n")
    return folder


def is_recorded(case: Case, seed: int, cache: Path) -> bool:
    """Whether the cache holds a recording by the same code."""
    made = _folder(case, seed, cache) / MADE
    return made.exists() and bool(json.loads(made.read_text())["key"] == code_key(case, seed))


def _folder(case: Case, seed: int, cache: Path) -> Path:
    return cache / case.name / f"seed-{seed}"


def record(case: Case, chosen: Plan, seed: int, directory: Path) -> Recording:
    """Record one case as planned for a seed."""
    torch.set_num_threads(1)
    if case.record is not None:
        return case.record(case, chosen, seed, directory)
    loop = Loop(directory, chosen, seed)
    train(loop, case)
    onset = None if case.since_start or case.is_healthy else chosen.at
    return Recording(seed, chosen.setting, chosen.rows, onset if loop.onset is None else loop.onset)


def read(folder: Path) -> Recording:
    """How the recording in a folder was made."""
    made = json.loads((folder / MADE).read_text())
    return Recording(made["seed"], Setting(**made["setting"]), made["rows"], made["onset"], made["rank"])


def code_key(case: Case, seed: int) -> str:
    """Names the plan and the code of this benchmark that a recording comes from.

    The recorder's own code is not in it, since a recording of before stays true: delete the cache for one by new code.
    """
    parts = [part for function in case.parts for part in _functions(function)]
    modules = sorted({*SHARED, *(function.__module__ for function in parts)})
    told = [repr(plan(case, seed)), *map(_described, parts)]
    told += [TABLE.split(inspect.getsource(sys.modules[name]))[0] for name in modules]
    return sha256("\0".join(told).encode()).hexdigest()[:16]


def _functions(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function and those that it holds as a closure."""
    yield function
    for value in _held(function):
        if callable(value):
            yield from _functions(value)


def _described(function: Callable[..., Any]) -> str:
    plain = [value for value in _held(function) if not callable(value)]
    return f"{function.__module__}.{function.__qualname__}{plain}"


def _held(function: Callable[..., Any]) -> list[Any]:
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
