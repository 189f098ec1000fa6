"""One panel of a figure: its lines, its baseline, its marks for bad rows, its title."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spikeview.format import cell
from spikeview.report.panels import Panel
from spikeview.report.series import (
    PIXELS,
    Frame,
    Positions,
    drawable,
    finite,
    isolated,
    marks,
    one_per_pixel,
    thinned,
)
from spikeview.report.theme import LIGHT, MARKERS
from spikeview.rules.diagnosis import Diagnosed
from spikeview.run import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_panel(axes: Axes, frame: Frame, panel: Panel) -> None:
    """One panel: baseline, lines, what belongs to the panel alone, and the strip of bad rows on top."""
    run, start, stop, x = frame.run, frame.start, frame.stop, frame.x
    lines = [(line, drawable(line.values(run)[start:stop])) for line in panel.lines]
    drawn = [values[np.isfinite(values)] for _, values in lines]
    known = np.concatenate(drawn) if drawn else np.empty(0)
    log = panel.is_log(known)
    if log:
        _log_axis(axes, known[known > 0])
    _baseline(axes, frame, panel.signal)
    for line, values in lines:
        if log:
            values = np.where(values > 0, values, np.nan)
        across, up = thinned(x, values)
        axes.plot(
            across,
            up,
            color=line.color,
            lw=line.width,
            drawstyle="steps-post" if line.steps else "default",
            label=line.label if np.isfinite(values).any() else None,
            gid=f"line-{line.id}",
        )
        alone = isolated(up)
        axes.plot(across[alone], up[alone], ".", ms=4, color=line.color)
    if not len(known):
        axes.text(0.5, 0.5, panel.absent, transform=axes.transAxes, ha="center", va="center", color=LIGHT["muted"])
        axes.set_yticks([])
    panel.decorate(axes, frame.run, x, slice(start, stop))
    _strip(axes, frame, panel, log)
    if len(panel.lines) > 1 and len(known):
        axes.legend(
            loc="upper left", frameon=False, fontsize=8, ncols=len(panel.lines), borderaxespad=0.2, handlelength=1.4
        )


def _log_axis(axes: Axes, known: Floats) -> None:
    """Ticks at 1, 2 and 5 where few decades are shown, at whole decades otherwise; never in powers' notation."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if known.max() / 100 < known.min() else (1.0,), numticks=6)
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _baseline(axes: Axes, frame: Frame, signal: str) -> None:
    baseline = frame.view.baselines.get(signal)
    if baseline is None or frame.stop - frame.start > 4 * PIXELS:
        return
    lower, upper = baseline.lower[frame.start : frame.stop], baseline.upper[frame.start : frame.stop]
    if np.isfinite(lower).any():
        axes.fill_between(
            frame.x, drawable(lower), drawable(upper), color=LIGHT["muted"], alpha=0.22, lw=0, gid=f"baseline-{signal}"
        )


def _strip(axes: Axes, frame: Frame, panel: Panel, log: bool) -> None:
    """Marks above the panel for rows that no line can show, each kind with its own shape."""
    from matplotlib.transforms import ScaledTranslation

    run, span = frame.run, slice(frame.start, frame.stop)
    found = {kind: mask[span] for kind, mask in marks(run, panel.signal).items()}
    if not panel.marks_skipped:
        found.pop("skipped")
    if log:
        found["zero"] = finite(run, panel.signal)[span] <= 0
    above = axes.get_xaxis_transform() + ScaledTranslation(0, 7 / 72, axes.figure.dpi_scale_trans)
    for kind, mask in found.items():
        at: Positions = one_per_pixel(np.flatnonzero(mask), len(mask))
        if len(at):
            axes.scatter(
                frame.x[at],
                np.ones(len(at)),
                transform=above,
                clip_on=False,
                zorder=5,
                gid=f"marks-{panel.id}-{kind}",
                **MARKERS[kind],
            )


def write_title(axes: Axes, frame: Frame, panel: Panel, position: int | None) -> None:
    """The panel's name, and what it reads at the first bad row."""
    scale = " (log)" if axes.get_yscale() == "log" else ""
    above: dict[str, Any] = {
        "xycoords": "axes fraction",
        "xytext": (0, 13),
        "textcoords": "offset points",
        "va": "bottom",
    }
    axes.annotate(panel.title + scale, (0, 1), fontweight="bold", **above)
    if position is not None:
        read = f"step {cell(frame.run, 'step', position)['text']}: {panel.reading(frame.run, position)}"
        axes.annotate(read, (1, 1), ha="right", color=LIGHT["muted"], **above)


def mark_incidents(axes: Axes, frame: Frame, panel: Panel, incidents: list[Diagnosed], transition: int | None) -> None:
    """A band over each incident, a line at its first bad row, a dashed line at the transition before it."""
    for diagnosed in incidents:
        first, last = diagnosed.incident.first_bad.position, min(diagnosed.incident.last, frame.stop - 1)
        axes.axvspan(
            frame.at(first) - 0.5,
            frame.at(last) + 0.5,
            color=LIGHT["bad"],
            alpha=0.10,
            lw=0,
            zorder=0,
            gid=f"incident-{panel.id}-{first}",
        )
        axes.axvline(frame.at(first), color=LIGHT["bad"], lw=0.8, alpha=0.7, zorder=1)
    if transition is not None:
        axes.axvline(
            frame.at(transition), color=LIGHT["text"], lw=0.9, ls=(0, (3, 2)), zorder=1, gid=f"transition-{panel.id}"
        )


def limit_steps(axes: Axes, frame: Frame) -> None:
    """The shared axis: exactly the frame's rows, ticks at whole steps."""
    if len(frame.x):
        from matplotlib.ticker import MaxNLocator

        pad = max(0.6, 0.01 * (frame.x[-1] - frame.x[0]))
        axes.set_xlim(frame.x[0] - pad, frame.x[-1] + pad)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
