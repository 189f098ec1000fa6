"""The learning rate of every parameter group: from a real loop to the panel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pytestqt.qtbot import QtBot

from recorder import FlightRecorder
from spikeview.ui.group_rates import group_rates
from spikeview.ui.layout import Layout
from spikeview.ui.panels.plotted import Curves
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.test_any_value import drawn_in

ROWS = 30


def record(path: Path) -> tuple[Path, list[list[float]]]:
    """Three groups whose rates fall apart, and the rates that each step ran under."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))
    groups = [{"params": part.parameters(), "lr": 10.0**-at} for at, part in enumerate(model, start=1)]
    optimizer = torch.optim.SGD(groups)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda t, k=k: 1 / (1 + k * t) for k in (1, 2, 3)])
    used = []
    with FlightRecorder(path, model, optimizer, scheduler=scheduler) as recorder:
        for _ in range(ROWS):
            used.append([group["lr"] for group in optimizer.param_groups])
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = model(torch.ones(2, 3)).square().mean()
                t.observe_loss(loss)
                loss.backward()
                optimizer.step()
                scheduler.step()
    return path, used


def test_every_group_has_its_curve(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    run, used = record(tmp_path / "groups")
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(run))
    window.plots.arrange(Layout(shown=frozenset({"learning_rate"})))
    qtbot.waitUntil(lambda: window.session.series.of("learning_rate") is not None)
    plotted = window.session.series.of("learning_rate")
    assert isinstance(plotted, Curves)
    assert np.transpose([curve.values for curve in plotted.curves]) == pytest.approx(np.array(used), rel=1e-8)
    assert all(drawn_in(window, "learning_rate", curve.role) for curve in plotted.drawn)
    window.session.inspect_row(5)
    told = "".join(span.text for span in window.plots.panels["learning_rate"].head(4))
    assert told == "first group   0.02000   others 0.00111111111, 7.69230769e-05"
    assert window.inspector._chain._values["lr"].toolTip() == "0.02000, 0.00111111111, 7.69230769e-05"


def test_rows_may_have_other_groups_than_those_before_and_say_nothing_that_is_no_number() -> None:
    told = pa.array(["0.1", None, "0.2 nan", "0.3 4e-05", "0.5 1e-05", "0.6"])
    run = made_runs.run_of({"loss": np.ones(6), "group_lrs": told})
    np.testing.assert_array_equal(
        group_rates(run), [[0.1, np.nan, 0.2, 0.3, 0.5, 0.6], [np.nan, np.nan, np.nan, 4e-05, 1e-05, np.nan]]
    )
    odd = made_runs.run_of({"loss": np.ones(2), "group_lrs": pa.array(["a  b", "0.1"])})
    assert np.isnan(group_rates(odd)[:, 0]).all()
    assert group_rates(odd)[0, 1] == 0.1
    assert group_rates(made_runs.run_of({"loss": np.ones(2)})).shape == (0, 2)
