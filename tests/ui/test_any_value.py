"""Every double has its place on a scale, and whatever cannot be drawn harms nothing else."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from PySide6.QtGui import QPainter

from spikeview.analysis.incident import KEPT
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.ui.headline import verdict
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.plot.scale import fitted, value_label, value_ticks
from spikeview.ui.window import Window
from tests.ui import made_runs

Show = Callable[[Diagnosis], Window]

LARGEST = sys.float_info.max
SIZES = [0.0, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-5, 1.0, math.nextafter(1.0, 2.0), 3.0, 1e16, 1e100, 1e305, LARGEST]
VALUES = [sign * size for size in SIZES for sign in (1, -1)]


def drawn_in(window: Window, panel: str, role: str) -> int:
    """How many pixels below a panel's head have the colour of a role."""
    image, colour = window.plots.panels[panel].grab().toImage(), window.session.theme[role]
    rows = range(30, image.height())
    return sum(image.pixelColor(x, y) == colour for x in range(image.width()) for y in rows)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("least_span", [0.0, 2.0])
@pytest.mark.parametrize("height", [20.0, 60.0, 400.0])
def test_every_double_has_its_place(log: bool, least_span: float, height: float) -> None:
    for low, high in product(VALUES, VALUES):
        if low > high or (log and low <= 0):
            continue
        up = fitted(low, high, least_span, log, 10, 10 + height)
        assert np.all(np.diff(up.pixels(np.array([low, high]))) <= 0)
        assert 10 <= up.pixel(high) <= up.pixel(low) <= 10 + height
        ticks = value_ticks(up, 38)
        assert all(math.isfinite(tick) for tick in ticks)
        assert len(ticks) <= 3 * max(2, height / 38) + 3
        assert all(len(value_label(tick, ticks, log)) < 30 for tick in ticks)


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        ([1e305] * 500, [5e-324] * 500),
        ([2.0] * 500, [1e308] * 500),
        ([LARGEST, -LARGEST] * 250, [5e-324, LARGEST] * 250),
        (list(5e-324 * np.arange(500)), [0.0] * 500),
    ],
)
def test_a_run_of_any_doubles_is_drawn(show: Show, loss: list[float], norm: list[float]) -> None:
    run = made_runs.run_of({"loss": loss, "grad_norm": norm, "executed": [True] * 500, "attempted": [True] * 500})
    window = show(Diagnosis(run, (made_runs.View("optimizer", run, {}),), (), ()))
    assert drawn_in(window, "loss", "loss") > 100
    assert drawn_in(window, "grad_norm", "norm") > 100 or not any(norm)


def test_a_panel_that_cannot_be_drawn_says_so_and_the_window_goes_on(
    show: Show, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    window = show(made_runs.healthy())
    window.grab()

    def broken(self: PanelWidget, painter: QPainter) -> None:
        painter.setOpacity(0.5)
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(PanelWidget, "paint", broken)
    for _ in range(5):
        window.grab()
    said = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert len(said) == 2, "one each for the two panels that have anything to draw"
    assert "Loss plot could not be drawn" in [each.message for each in said]
    assert said[0].exc_info is not None
    caplog.clear()
    assert drawn_in(window, "loss", "bad") > 20, "the line that says what went wrong"
    assert drawn_in(window, "loss", "loss") == 0
    monkeypatch.undo()
    assert drawn_in(window, "loss", "bad") == 0
    assert drawn_in(window, "loss", "loss") > 100


def test_a_fault_within_a_kept_picture_is_harmless_too(
    show: Show, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spikeview.ui.plot.curves_widget.value_ticks", lambda *_: [1 / 0])
    window = show(made_runs.healthy())
    for _ in range(3):
        window.grab()
    assert "ZeroDivisionError" in caplog.text
    caplog.clear()


def test_no_incident_is_said_only_of_what_was_judged(show: Show) -> None:
    run = made_runs.run_of({"loss": [1.0, 2.0, 3.0], "executed": [True] * 3, "attempted": [True] * 3})
    window = show(diagnose(run))
    says = "No incident in 3 rows; none of them has a baseline to be judged by, and"
    assert window.summary._none.text().startswith(says)
    assert window.inspector._none.text().startswith(says)


def test_a_row_late_in_a_long_incident_is_still_out_of_its_baseline(show: Show) -> None:
    random = np.random.default_rng(5)
    norm = np.exp(0.1 * random.standard_normal(1200))
    norm[300:] *= 80
    run = made_runs.run_of(
        {"loss": 2.0 + 0.01 * random.standard_normal(1200), "grad_norm": norm, "executed": [True] * 1200}
    )
    window = show(diagnose(run))
    [incident] = window.session.incidents
    assert len(incident.incident.observations) <= KEPT + 4
    window.session.inspect_row(1100)
    assert "pre-clip norm" in "".join(span.text for span in verdict(window.session))


def test_text_of_a_run_is_text(show: Show) -> None:
    run = made_runs.run_of(
        {
            "loss": [1.0] * 3,
            "batch_id": ["<b>bold</b>\u202e\x1b"] * 3,
            "executed": [True] * 3,
            "optimizer": ["optimizer"] * 3,
        },
        path="runs/<i>x</i>\u202e",
        manifest={"device": "<b>cuda</b>\u202e"},
    )
    window = show(diagnose(run))
    chain = window.inspector._chain._values["batch_id"]
    assert chain.text().startswith("<b>bold</b>\\u202e\\x1b"[:10])
    assert chain.toolTip() == "<b>bold</b>\\u202e\\x1b"
    assert "\u202e" not in window.windowTitle()
    assert "\u202e" not in window.header._name.text()
