"""The same data in pyqtgraph, matplotlib and TensorBoard's loader, where they are installed; run as window_child is."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.window_child import SIZE, timed

PANELS = 6


def _values(rows: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.normal(size=rows) for _ in range(PANELS)]


def pyqtgraph_empty() -> dict[str, Any]:
    """Six linked plots without data, painted."""
    app, _, _ = _pyqtgraph()
    app.processEvents()
    return {"painted": time.time()}


def pyqtgraph_frames(rows: str) -> dict[str, Any]:
    """A pan of its six plots, without data and then with it, in its own peak mode and clipped to the view."""
    app, plots, graph = _pyqtgraph()
    extent, x = int(rows), np.arange(int(rows), dtype=float)

    def pan(at: int) -> None:
        plots[0].setXRange(extent * (0.1 + at * 0.002), extent * (0.7 + at * 0.002), padding=0)

    pan(0)
    app.processEvents()
    empty = timed(app, pan)
    for plot, y in zip(plots, _values(int(rows)), strict=True):
        curve = plot.plot(x, y, pen=graph.mkPen("c", width=1))
        curve.setClipToView(True)
        curve.setDownsampling(auto=True, method="peak")
    app.processEvents()
    return {"empty": empty, "pan": timed(app, pan)}


def _pyqtgraph() -> tuple[Any, Any, Any]:
    import pyqtgraph as graph

    app = graph.mkQApp()
    view = graph.GraphicsLayoutWidget(size=SIZE)
    plots = []
    for row in range(PANELS):
        plot = view.addPlot(row=row, col=0)
        if row < PANELS - 1:
            plot.hideAxis("bottom")
        if plots:
            plot.setXLink(plots[0])
        plots.append(plot)
    view.show()
    app.processEvents()
    app._view = view
    return app, plots, graph


def matplotlib_pan(rows: str) -> dict[str, Any]:
    """Six axes drawn by Agg, then moved."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(PANELS, sharex=True, figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100)
    for axis, y in zip(axes, _values(int(rows)), strict=True):
        axis.plot(y, linewidth=1)
    begun = time.perf_counter()
    figure.canvas.draw()
    first = time.perf_counter() - begun
    axes[0].set_xlim(0.2 * int(rows), 0.8 * int(rows))
    begun = time.perf_counter()
    figure.canvas.draw()
    return {"first_s": first, "pan_s": time.perf_counter() - begun}


def tensorboard_load(rows: str) -> dict[str, Any]:
    """Its event accumulator on six tags."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    with tempfile.TemporaryDirectory() as place:
        writer = EventFileWriter(place)
        for row in range(int(rows)):
            values = [Summary.Value(tag=f"tag{at}", simple_value=float(row)) for at in range(PANELS)]
            writer.add_event(Event(step=row, wall_time=row, summary=Summary(value=values)))
        writer.close()
        begun = time.perf_counter()
        loaded = EventAccumulator(place)
        loaded.Reload()
        kept = len(loaded.Scalars("tag0"))
    return {"load_s": time.perf_counter() - begun, "kept": kept, "of": int(rows)}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])), flush=True)
