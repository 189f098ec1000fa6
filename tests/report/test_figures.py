from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.incident import Incident, Observation
from spikeview.report import figures
from spikeview.report.series import PIXELS, isolated, one_per_pixel, thinned
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, View
from spikeview.run import Run

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def marks(svg: str, group: str) -> int:
    """How many marks one kind has in one panel: shapes drawn in place, or uses of one that was defined."""
    root = ET.fromstring(svg)
    found = [element for element in root.iter() if element.get("id", "").endswith(f"-marks-{group}")]
    defined = {path for one in found for defs in one.iter(SVG + "defs") for path in defs.iter(SVG + "path")}
    shapes = [shape for one in found for tag in ("use", "path") for shape in one.iter(SVG + tag)]
    return sum(shape not in defined for shape in shapes)


def test_every_nonfinite_and_skipped_row_has_its_mark(skips: Diagnosis) -> None:
    svg = figures.around_incident(skips.incidents[0], "i1")
    assert {
        group: marks(svg, group)
        for group in ("loss-nan", "norm-inf", "norm-nan", "clocks-skipped", "alignment-skipped")
    } == {
        "loss-nan": 1,
        "norm-inf": 2,
        "norm-nan": 1,
        "clocks-skipped": 3,
        "alignment-skipped": 3,
    }
    assert marks(svg, "loss-inf") == 0


def test_a_gradient_norm_of_zero_is_seen_on_its_log_axis(run_of: Callable[..., Run]) -> None:
    run = run_of(
        {"grad_norm": [1.0, 0.0, 2.0], "loss": [1.0, 1.0, 1.0], "attempted": [True] * 3, "executed": [True] * 3}
    )
    view = View("optimizer", run, {})
    svg = figures.whole_run(Diagnosis(run, (view,), (), ()), view, "r0")
    assert marks(svg, "norm-zero") == 1


def test_the_incident_and_the_transition_are_marked_and_text_stays_text(explosion: Diagnosis) -> None:
    svg = figures.around_incident(explosion.incidents[0], "i1")
    assert re.findall('id="i1-incident-([a-z]+)-6"', svg) == ["loss", "norm", "clocks", "ratio", "alignment"]
    assert len(re.findall('id="i1-transition-[a-z]+"', svg)) == 5
    assert ">Pre-clip gradient norm (log)<" in svg
    assert "step 6: 3.785e+08" in svg
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", svg)


def test_a_scale_that_falls_has_a_panel_and_one_that_stays_has_none(skips: Diagnosis) -> None:
    falls = figures.around_incident(skips.incidents[0], "i")
    assert "i-incident-scale-2" in falls
    assert "i-incident-ratio-2" not in falls
    [one, _] = skips.incidents
    still = one.view.run.table.set_column(
        one.view.run.table.column_names.index("loss_scale"), "loss_scale", pa.array([1024.0] * 8)
    )
    view = replace(one.view, run=replace(one.view.run, table=still, _cache={}))
    assert "i-incident-scale-2" not in figures.around_incident(replace(one, view=view), "i")


def test_a_figure_is_the_same_every_time(skips: Diagnosis) -> None:
    assert figures.around_incident(skips.incidents[0], "a") == figures.around_incident(skips.incidents[0], "a")


def test_no_spike_is_lost_in_a_long_run() -> None:
    values = np.sin(np.arange(1_000_000.0))
    values[[123_456, 777_777]] = 50.0, -70.0
    x, up = thinned(np.arange(len(values), dtype=np.float64), values)
    assert len(up) == 2 * PIXELS
    assert (up.max(), up.min()) == (50.0, -70.0)
    assert abs(x[int(np.argmax(up))] - 123_456) < len(values) / PIXELS


def test_a_mark_among_a_million_rows_is_kept() -> None:
    bad = np.array([5, 6, 7, 999_999])
    assert list(one_per_pixel(bad, 1_000_000)) == [5, 999_999]


def test_a_finite_value_between_two_that_are_not_is_a_point_of_its_own() -> None:
    values = np.array([1.0, np.nan, 2.0, np.nan, 3.0, 4.0])
    assert list(isolated(values)) == [True, False, True, False, False, False]


def test_accumulating_and_gated_rows_are_not_called_skipped(run_of: Callable[..., Run]) -> None:
    run = run_of(
        {
            "attempted": [True, False, False, True, False],
            "executed": [True, False, False, False, False],
            "skip_reason": [None, "accumulating", "gated", "amp_overflow", "nonfinite_loss"],
        }
    )
    assert list(skipped_or_declined(run)) == [False, False, False, True, True]


def test_steps_that_go_back_are_drawn_along_rows(run_of: Callable[..., Run]) -> None:
    run = run_of({"loss": [1.0, 2.0, 3.0, 2.0, 9.0], "step": [0, 1, 2, 1, 2]})
    view = View("optimizer", run, {})
    incident = Incident((Observation(4, "loss", 9.0, "outlier", 40.0),), 3, 4, "warning", "transient", ())
    assert ">row<" in figures.around_incident(Diagnosed(incident, view, 3, ()), "i")
