"""Real frameworks on a small model, beside the same loop written by hand with the recorder."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from math import isclose
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the integrations need the extra [torch]")

from recorder.store import read_run  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip

Rows = list[dict[str, Any]]

# What two runs of the same training differ in.
PASSING = ("time_ns", "memory_bytes")


@pytest.fixture(autouse=True, scope="session")
def _collects_only_its_own() -> Iterator[None]:
    """No collection looks through what the imports left: the frameworks ask for many, at half a second each."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Offline, on one thread, and nothing written beside the test's own directory."""
    for name, value in {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "WANDB_MODE": "disabled"}.items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith("ACCELERATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def rows() -> Callable[[Path], Rows]:
    def read(path: Path) -> Rows:
        run = read_run(path)
        assert [event["text"] for event in run.events if event["kind"] == "recorder_fault"] == []
        found: Rows = run.table.to_pylist()
        return found

    return read


@pytest.fixture
def events() -> Callable[[Path, str], Rows]:
    def read(path: Path, kind: str) -> Rows:
        return [dict(event) for event in read_run(path).events if event["kind"] == kind]

    return read


def resume_incomplete(run: Path) -> Outcome:
    """What the check says on a run."""
    return next(check.outcome for check in diagnose(open_run(run)).checks if check.id == "resume_incomplete")


def differences(found: Rows, by_hand: Rows, beside: tuple[str, ...] = (), close: tuple[str, ...] = ()) -> list[str]:
    """Each cell in which a framework's rows are not those of the loop written by hand; `close` ones to a float32's."""
    assert len(found) == len(by_hand), (len(found), len(by_hand))
    told = []
    for one, other in zip(found, by_hand, strict=True):
        for name in one:
            if name in PASSING or name in beside:
                continue
            both_nan = one[name] != one[name] and other[name] != other[name]
            near = (
                name in close and None not in (one[name], other[name]) and isclose(one[name], other[name], rel_tol=1e-6)
            )
            if one[name] != other[name] and not (both_nan or near):
                told.append(f"row {one['row']} {name}: {one[name]!r}, by hand {other[name]!r}")
    return told
