"""What recording costs, as ratios to the same loop without it, measured in one process.

    python -m benchmarks.recorder_overhead [--model tiny mlp gpt] [--steps 100] [--device cpu] [--others]

Every variant trains a copy of the model of its own, and the variants take their steps in turn, so that a change of the
machine's speed meets them all. Printed are the median time of a step, the ratio of the medians to the plain loop
(which clips by itself) with the quartiles of the step-by-step ratios, and, for the recorder, the time of the norm, the
clipping and the sample of the update, and what is left of its cost beside them ("bookkeeping"). These two are of the
fastest tenth of the steps, which nothing else on the machine has interrupted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from unittest import mock

import torch

from benchmarks.models import MODELS, Workload
from benchmarks.other_recorders import installed
from recorder import FlightRecorder
from recorder.channel import gradients
from recorder.movement import Movement

Step = Callable[[], None]
Make = Callable[[Workload, Path], Step]


def plain(work: Workload, _folder: Path) -> Step:
    """The loop as it is without a recorder."""

    def step() -> None:
        work.optimizer.zero_grad()
        work.loss().backward()
        torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        work.optimizer.step()

    return step


def recorded(deep_every: int | str) -> Make:
    """The loop under the flight recorder."""

    def make(work: Workload, folder: Path) -> Step:
        recorder = FlightRecorder(folder, work.model, work.optimizer, max_norm=1.0, deep_every=deep_every)

        def step() -> None:
            with recorder.transition(batch_id="same") as t:
                work.optimizer.zero_grad()
                loss = work.loss()
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                work.optimizer.step()

        return step

    return make


def naive(work: Workload, _folder: Path) -> Step:
    """A recorder as it is first written: snapshots, one concatenated vector each, one read per value."""
    rows: list[dict[str, float]] = []

    def step() -> None:
        parameters = list(work.model.parameters())
        work.optimizer.zero_grad()
        loss = work.loss()
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).clone()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        before = [p.detach().clone() for p in parameters]
        work.optimizer.step()
        change = torch.cat([(p.detach() - b).flatten() for p, b in zip(parameters, before, strict=True)])
        theta = torch.cat([b.flatten() for b in before])
        cosine = torch.dot(change, -gradient) / (change.norm() * gradient.norm() + 1e-12)
        ratio = change.norm() / (theta.norm() + 1e-12)
        rows.append({"loss": loss.item(), "norm": norm.item(), "ratio": ratio.item(), "cos": cosine.item()})

    return step


VARIANTS: dict[str, Make] = {
    "plain": plain,
    "always-on": recorded(0),
    "auto": recorded("auto"),
    "exact": recorded(1),
    "naive": naive,
}


@contextmanager
def timed_arithmetic(spent: list[float]) -> Iterator[None]:
    """Adds up, while it is open, the time of the recorder's norm, clipping and movement."""
    with ExitStack() as stack:
        for name in ("gradient_norms", "clip_finite_"):
            stack.enter_context(mock.patch.object(gradients, name, _timed(getattr(gradients, name), spent)))
        for name in ("theta", "gradient", "measure"):
            stack.enter_context(mock.patch.object(Movement, name, _timed(getattr(Movement, name), spent)))
        yield


def _timed(function: Callable[..., object], spent: list[float]) -> Callable[..., object]:
    def wrapper(*args: object) -> object:
        started = perf_counter()
        try:
            return function(*args)
        finally:
            spent[0] += perf_counter() - started

    return wrapper


def run(model: str, steps: int, device: str, variants: Mapping[str, Make]) -> dict[str, Any]:
    """Times of every variant on one model, in seconds, and what follows from them."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    with TemporaryDirectory() as folder:
        loops = {name: make(MODELS[model](device), Path(folder) / name) for name, make in variants.items()}
        times: dict[str, list[float]] = {name: [] for name in loops}
        for index in range(steps + 5):
            for name, step in loops.items():
                started = perf_counter()
                step()
                synchronize()
                seconds = perf_counter() - started
                if index >= 5:
                    times[name].append(seconds)
        arithmetic = _time_of_arithmetic(loops["always-on"], max(20, steps))
    clipping = _time_of_clipping(MODELS[model](device), max(20, steps))
    extra = _quick(times["always-on"]) - _quick(times["plain"])
    return {
        "model": model,
        "steps": steps,
        "median_seconds": {name: median(values) for name, values in times.items()},
        "ratio": {name: _ratio(values, times["plain"]) for name, values in times.items() if name != "plain"},
        "exact_against_naive": (median(times["naive"]) - median(times["plain"]))
        / (median(times["exact"]) - median(times["plain"])),
        "arithmetic_seconds": arithmetic,
        "bookkeeping_seconds": extra - arithmetic + clipping,
    }


def _quick(values: Sequence[float]) -> float:
    return quantiles(values, n=10)[0]


def _ratio(values: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    low, _, high = quantiles([a / b for a, b in zip(values, base, strict=True)])
    return {"of_medians": median(values) / median(base), "lower_quartile": low, "upper_quartile": high}


def _time_of_arithmetic(step: Step, repeats: int) -> float:
    """In steps of their own, for what times it makes the code around it slower."""
    spent, times = [0.0], []
    with timed_arithmetic(spent):
        for _ in range(repeats):
            spent[0] = 0.0
            step()
            times.append(spent[0])
    return _quick(times)


def _time_of_clipping(work: Workload, repeats: int) -> float:
    """Between a backward pass and a step, as in the loop: on its own it would find its caches warm."""
    times = []
    for _ in range(repeats):
        work.optimizer.zero_grad()
        work.loss().backward()
        started = perf_counter()
        torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        times.append(perf_counter() - started)
        work.optimizer.step()
    return _quick(times)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", nargs="+", choices=list(MODELS), default=list(MODELS))
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--device", default="cpu")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--others", action="store_true", help="also CSV, TensorBoard, W&B, trainscope if installed")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    variants = VARIANTS | installed() if given.others else VARIANTS
    results = [run(model, given.steps, given.device, variants) for model in given.model]
    for result in results:
        print(f"{result['model']}: {result['steps']} steps, {given.threads} thread(s), {given.device}")
        for name, seconds in result["median_seconds"].items():
            ratio = result["ratio"].get(name)
            spread = "" if ratio is None else "  {of_medians:.3f} ({lower_quartile:.3f} to {upper_quartile:.3f})"
            print(f"  {name:<10} {seconds * 1e3:10.3f} ms{spread.format(**(ratio or {}))}")
        print(f"  norm, clipping and sample {result['arithmetic_seconds'] * 1e6:.0f} us a step")
        print(f"  bookkeeping {result['bookkeeping_seconds'] * 1e6:.0f} us a step beside them")
        print(f"  the exact tier is {result['exact_against_naive']:.1f} times cheaper than the naive recorder")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
