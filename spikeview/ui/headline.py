"""The inspector's headline in two lines: t-1 -> theta_t -> L_t, and what was observed of it."""

from __future__ import annotations

from spikeview.analysis.incident import Observation
from spikeview.format import scalar
from spikeview.report.transition import WATCHED, measured
from spikeview.rules.diagnosis import Diagnosed, points_back
from spikeview.ui.fonts import advance, interface_font, scaled
from spikeview.ui.near import near
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, html
from spikeview.ui.values import cell, step_label, told


def observed(session: Session) -> list[Observation]:
    """What the diagnosis saw of the inspected transition, in causal order.

    Its own update, then the loss and the gradient that were computed with what it left behind.
    """
    own, led_to = session.cursor, session.observed
    return [
        each
        for diagnosed in session.incidents
        if diagnosed.view.optimizer == session.view.optimizer
        and diagnosed.incident.last >= own
        and diagnosed.incident.first_bad.position <= (own if led_to is None else led_to)
        for position in ([own] if led_to is None else [own, led_to])
        for each in _at(diagnosed, position)
        if position == (led_to if points_back(each) else own)
    ]


def _at(diagnosed: Diagnosed, position: int) -> list[Observation]:
    """What was observed of one row; a long incident keeps only its first observations, and the rest are seen anew."""
    kept, view = diagnosed.incident.observations, diagnosed.view
    if not kept[-1].position < position <= diagnosed.incident.last:
        return [each for each in kept if each.position == position]
    block, at = near(view, position)
    cells = {name: measured(block, name, at) for name in WATCHED}
    return [
        Observation(
            position,
            name,
            float(block.run.values(name)[at]),
            "nonfinite" if found["level"] == "nonfinite" else "outlier",
            found["mads"],
        )
        for name, found in cells.items()
        if found["out"]
    ]


def chain_of_three(session: Session, width: float) -> str:
    """`8,219 → θ 8,220 → loss 8,220`, then that loss and how far it is from its baseline.

    What does not fit into the width in pixels is written smaller, and then without the distance.
    """
    run, theme = session.run, session.theme
    before = "start" if session.cursor < 0 else step_label(run, session.cursor)
    if session.observed is None:
        return html([Span(f"{before} → ", "text", bold=True), Span("the recording ends here")], theme)
    after = step_label(run, session.observed)
    loss = cell(session.view, "loss", session.observed)
    head = [Span(f"{before} → θ", "text", bold=True), Span(f" → loss {after}", "text", bold=True)]
    index = html([Span(after, "text", bold=True)], theme)
    value = [
        Span(loss.text, loss.role if loss.role != "text" else "muted"),
        Span(f", {loss.away}" if loss.away else ""),
    ]
    plain = f"{before} → θ{after} → loss {after}   {loss.text}"
    long = advance(interface_font(14, bold=True), f"{plain}, {loss.away}") > width
    value = value[:1] if advance(interface_font(12, bold=True), f"{plain}, {loss.away}") > width else value
    size = f'<span style="font-size:{scaled(12 if long else 14)}px">'
    three = f"{html(head[:1], theme)}<sub>{index}</sub>{html(head[1:], theme)}"
    return f"{size}{three}</span>&nbsp;&nbsp; {html(value, theme)}"


def verdict(session: Session) -> list[Span]:
    """What left its baseline or the finite numbers; the loss stands in the line above."""
    found = observed(session)
    rest = [each for each in found if each.signal != "loss"]
    if not rest:
        return [Span(_nothing(session, besides_loss=bool(found)))]
    chosen = session.selected
    first = chosen is not None and session.at_incident and rest[0] == chosen.incident.first_bad
    lead = "first bad: " if first else "also " if len(rest) < len(found) else ""
    spans = [Span(lead)]
    for number, each in enumerate(rest):
        what, how = told(each)
        value = f" {scalar(each.signal, each.value)}," if each.deviation is not None else ""
        spans += [Span(" · ")] if number else []
        spans.append(Span(f"{what}{value} {how}".rstrip(), "bad"))
    return spans


def _nothing(session: Session, besides_loss: bool) -> str:
    if besides_loss:
        return "nothing else left its baseline"
    rows = [row for row in (session.inspected, session.observed) if row is not None]
    judged = any(cell(session.view, name, row).deviation is not None for name in WATCHED for row in rows)
    return "nothing left its baseline" if judged else "too few rows before it for a baseline"
