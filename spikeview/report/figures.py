"""The figures of a report as SVG: the panels around an incident, and the whole run with its incidents marked.

Drawn by matplotlib without a screen and without pyplot. Text stays text; nothing from outside the run is in it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spikeview.report.drawing import draw_panel, limit_steps, mark_incidents, write_title
from spikeview.report.occasional import panels_for
from spikeview.report.panels import PANELS, Panel
from spikeview.report.series import Frame, around
from spikeview.report.theme import LIGHT
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, LEFT, RIGHT, HEAD, FOOT = 10.0, 0.6, 0.12, 0.48, 0.5  # inches
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spikeview",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,
    "text.color": LIGHT["text"],
    "axes.edgecolor": LIGHT["line"],
    "axes.labelcolor": LIGHT["muted"],
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": False,
    "axes.grid.axis": "y",
    "grid.color": LIGHT["grid"],
    "axes.axisbelow": True,
}


def around_incident(diagnosed: Diagnosed, prefix: str) -> str:
    """Loss, pre-clip norm, clocks, alignment, and what else tells of one incident, around it.

    `prefix` keeps ids apart within one page.
    """
    frame = Frame(diagnosed.view, *around(diagnosed))
    panels = panels_for(diagnosed, slice(frame.start, frame.stop))
    return _svg(lambda: _panels(frame, [diagnosed], diagnosed.transition, panels), prefix)


def which(view: View) -> tuple[str, int]:
    """Whose rows a view shows: those of an optimizer, on a rank."""
    return view.optimizer, view.run.rank


def whole_run(diagnosis: Diagnosis, view: View, prefix: str, shown: Diagnosed | None = None) -> str:
    """The loss and the norm of the whole run, every incident of the view marked, the range of `shown` framed."""
    frame = Frame(view, 0, len(view.run))
    incidents = [one for one in diagnosis.incidents if which(one.view) == which(view)]

    def draw() -> Figure:
        figure = _panels(frame, incidents, None, PANELS[:2] if incidents else PANELS)
        if shown is not None:
            start, stop = around(shown)
            for index, axes in enumerate(figure.axes):
                axes.axvspan(
                    frame.at(start),
                    frame.at(stop - 1),
                    facecolor="none",
                    edgecolor=LIGHT["accent"],
                    lw=1.2,
                    gid=f"shown-{index}",
                )
        return figure

    return _svg(draw, prefix)


def _panels(
    frame: Frame, incidents: list[Diagnosed], transition: int | None, panels: tuple[Panel, ...] = PANELS
) -> Figure:
    from matplotlib.figure import Figure

    height = sum(panel.height + HEAD for panel in panels) + FOOT
    figure = Figure(figsize=(WIDTH, height))
    top, shared = height, None
    first_bad = incidents[0].incident.first_bad.position if len(incidents) == 1 else None
    for index, panel in enumerate(panels):
        top -= panel.height + HEAD
        place = (LEFT / WIDTH, top / height, (WIDTH - LEFT - RIGHT) / WIDTH, panel.height / height)
        axes = figure.add_axes(place, sharex=shared)
        shared = shared or axes
        draw_panel(axes, frame, panel)
        write_title(axes, frame, panel, first_bad)
        mark_incidents(axes, frame, panel, incidents, transition)
        axes.tick_params(length=0, which="both", labelbottom=index == len(panels) - 1)
    limit_steps(axes, frame)
    axes.set_xlabel(frame.axis)
    return figure


def _svg(draw: Callable[[], Figure], prefix: str) -> str:
    """The drawing as an <svg> element to put into a page, its ids made unique, its text in the page's own font."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]  # typed with a literal for every key
        figure = draw()
        out = io.StringIO()
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    return re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{prefix}-", svg)
