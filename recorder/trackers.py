"""Rows and triggers also in the tracker that people look at: TensorBoard, Weights & Biases or MLflow.

`FlightRecorder(..., trackers=[TensorBoard("logs")])`. The run directory stays the record: a tracker is told of every
`every`-th row and of each row with which a trigger trips, from a thread of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from typing import Any, Protocol

_SHOWN = ("loss", "grad_norm", "clip_coef", "lr", "loss_scale", "update_ratio", "update_cosine")
_MOST_TEXT = 500  # what MLflow takes as the value of a tag


@dataclass(frozen=True)
class Told:
    """One row for a tracker: numbers by name, and what a trigger said of it."""

    step: int
    row: int
    time_ns: int
    values: Mapping[str, float]
    trigger: str | None = None


class Tracker(Protocol):
    """What is told of rows, a few at a time, in order. It may raise: then it is told no more, and the run says so."""

    every: int

    def begin(self, run: str) -> None:
        """Take the path of the run directory."""

    def tell(self, rows: Sequence[Told]) -> None: ...

    def close(self) -> None: ...


def told(columns: Mapping[str, Any], alone: bool, trigger: str | None = None) -> Told:
    """A stored row as a tracker shows it; named with its optimizer unless that is `alone`."""
    prefix = "spikeview/" if alone else f"spikeview/{columns['optimizer']}/"
    values = {prefix + name: float(columns[name]) for name in _SHOWN if columns.get(name) is not None}
    values[prefix + "skipped"] = float(columns["attempted_n"] - columns["executed_n"])
    return Told(int(columns["step"]), int(columns["row"]), int(columns["time_ns"]), values, trigger)


class TensorBoard:
    """`to` is a SummaryWriter, which stays open, or a directory for one."""

    def __init__(self, to: Any, *, every: int = 10) -> None:
        self.every = every
        self._directory = str(to) if isinstance(to, (str, PathLike)) else None
        self._make = None if self._directory is None else _summary_writer()
        self._writer = to

    def begin(self, run: str) -> None:
        if self._make is not None:
            self._writer = self._make(self._directory)
        self._writer.add_text("spikeview/run", run)

    def tell(self, rows: Sequence[Told]) -> None:
        for row in rows:
            for name, value in row.values.items():
                self._writer.add_scalar(name, value, row.step, walltime=row.time_ns / 1e9)
            if row.trigger is not None:
                self._writer.add_text("spikeview/trigger", row.trigger, row.step, walltime=row.time_ns / 1e9)

    def close(self) -> None:
        if self._make is None:
            self._writer.flush()
        else:
            self._writer.close()


class WeightsAndBiases:
    """`run` is what `wandb.init()` returned; without one it is the run that is active then.

    Nothing is committed: the values go with what the loop logs next, so that its own steps stay as they are.
    """

    def __init__(self, run: Any = None, *, every: int = 10) -> None:
        self.every = every
        self._run = run

    def begin(self, run: str) -> None:
        self._run = self._run or import_module("wandb").run
        if self._run is None:
            raise RuntimeError("WeightsAndBiases found no active run: call wandb.init() before, or pass its run")
        self._run.summary["spikeview/run"] = run

    def tell(self, rows: Sequence[Told]) -> None:
        for row in rows:
            self._run.log({**row.values, "spikeview/step": row.step}, commit=False)
            if row.trigger is not None:
                self._run.summary["spikeview/trigger"] = row.trigger

    def close(self) -> None:
        return None


class MLflow:
    """`run_id` is the run's; without one it is the run that is active when the recorder is made."""

    def __init__(self, run_id: str | None = None, *, client: Any = None, every: int = 10) -> None:
        self.every = every
        self._client = client
        self._run_id = run_id
        if run_id is None:
            active = import_module("mlflow").active_run()
            if active is None:
                raise RuntimeError("MLflow has no active run: call mlflow.start_run() before, or pass run_id=")
            self._run_id = active.info.run_id

    def begin(self, run: str) -> None:
        self._client = self._client or import_module("mlflow").MlflowClient()
        self._client.set_tag(self._run_id, "spikeview.run", run)

    def tell(self, rows: Sequence[Told]) -> None:
        metric = import_module("mlflow.entities").Metric
        metrics = [
            metric(name.replace("/", "."), value, row.time_ns // 1_000_000, row.step)
            for row in rows
            for name, value in row.values.items()
        ]
        self._client.log_batch(self._run_id, metrics=metrics)
        for row in rows:
            if row.trigger is not None:
                self._client.set_tag(self._run_id, "spikeview.trigger", row.trigger[:_MOST_TEXT])

    def close(self) -> None:
        return None


def _summary_writer() -> Any:
    """The class of TensorBoard's own writer, or of the one that needs nothing else."""
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            return import_module(module).SummaryWriter
        except ImportError:
            continue
    raise ImportError("recorder.trackers.TensorBoard needs a SummaryWriter: pip install tensorboard")
