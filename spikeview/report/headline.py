"""A diagnosis in one sentence: what was seen first, after which transition, and where to look; or that nothing was."""

from __future__ import annotations

from typing import Any

import numpy as np

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.incident import Observation
from spikeview.analysis.rates import rates
from spikeview.cells import Kind
from spikeview.format import cell, count, label, mads, number, plural, scalar, shown
from spikeview.meaning import hides_nonfinite, onset
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.finding import Verdict
from spikeview.rules.relevance import SPEAKS_OF
from spikeview.rules.wording import name_rows
from spikeview.run import Run

LONGEST_NAME = 60

ORDINARY = "ordinary_grad_abnormal_update"
CLEAN = "loss_spike_clean_transition"


def headline(diagnosed: Diagnosed, transition: dict[str, Any] | None) -> str:
    """One sentence, made only of what was recorded and found."""
    matched = [finding for finding in diagnosed.findings if finding.verdict is Verdict.MATCHED]
    if matched:
        where = _rate(diagnosed) if matched[0].id == ORDINARY else _batch(diagnosed)
        look = f": look at {where}{matched[0].look.rstrip('.')}{_or_else(diagnosed)}"
    else:
        untold = sum(finding.verdict is Verdict.CANNOT_TELL for finding in diagnosed.findings)
        look = "; no line of the triage table matched" + (f", {untold} could not be told" if untold else "")
    return f"{_seen(diagnosed)}{_context(diagnosed, transition)}{look}."


def no_incident(diagnosis: Diagnosis) -> str:
    """That no incident was found, and what that cannot be said of; without a full stop."""
    run, judged = diagnosis.run, diagnosis.judged_rows
    rows = plural(len(run), "row")
    absent = [label(name) for name in diagnosis.unjudged if not run.recorded(name).any()]
    unjudged = [label(name) for name in diagnosis.unjudged if run.recorded(name).any()]
    untold = []
    if not judged:
        untold.append("none of them has a baseline to be judged by")
    elif judged < len(run):
        untold.append(f"{plural(len(run) - judged, 'row')} {_have(len(run) - judged)} no baseline to be judged by")
    if judged and unjudged:
        untold.append(f"{_list(unjudged)} {_have(len(unjudged))} none anywhere")
    if absent:
        untold.append(f"{_list(absent)} {'was' if len(absent) == 1 else 'were'} not recorded")
    untold += [
        f"on {plural(often, 'row')} {label(name)} was far out, but no farther than it often is"
        for name, often in diagnosis.habitual.items()
    ]
    if not untold:
        return f"No incident: {rows} inside their baselines"
    return f"No incident in {rows}; {', and '.join(untold)}"


def aftermath(diagnosed: Diagnosed) -> str | None:
    """What the incident did next, where it did: its own update, and the steps that did not execute."""
    said = [_own_update(diagnosed), _skips(diagnosed)]
    return " ".join(text for text in said if text) or None


def _own_update(diagnosed: Diagnosed) -> str:
    """Where the first bad row's own update left its baseline and the next loss did too: a second link of the chain."""
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    here = {seen.signal: seen for seen in _at(diagnosed, first.position)}
    then = {seen.signal: seen for seen in _at(diagnosed, first.position + 1)}
    if first.phase != "forward" or "update_ratio" not in here or "loss" not in then:
        return ""
    norm = cell(run, "grad_norm", first.position)
    step = cell(run, "step", first.position + 1)["text"]
    known = [f"norm {norm['text']}" if norm["value"] is not None else "", _clipping(run, first.position)]
    how = ", ".join(text for text in known if text)
    return (
        f"Its own update{f' ({how})' if how else ''} then moved the weights by "
        f"{number(here['update_ratio'].value)} times their size; "
        f"the loss of step {step}, computed with what it left, was {number(then['loss'].value)}."
    )


def _clipping(run: Run, position: int) -> str:
    """Whether a row was clipped, where that is known: not where the norm was first seen at the step."""
    kind = Kind(int(run.kind("clip_coef")[position]))
    if kind == Kind.NOT_RECORDED or (kind != Kind.FINITE and run.text("grad_norm_source", position) == "at_step"):
        return ""
    return "clipped" if kind == Kind.FINITE and run.values("clip_coef")[position] < 1 else "not clipped"


def _skips(diagnosed: Diagnosed) -> str:
    """How many steps did not execute, and whether the scheduler went on without them."""
    incident, run = diagnosed.incident, diagnosed.view.run
    first, last = incident.first_bad.position, incident.last
    still = [first + int(at) for at in np.flatnonzero(skipped_or_declined(run)[first : last + 1])]
    if not still:
        return ""
    one = len(still) == 1
    said = f"{'One step' if one else f'{count(len(still))} steps'} did not execute ({name_rows(run, still)})"
    if not (run.recorded("scheduled_n") & run.recorded("executed_n"))[[max(0, first - 1), last]].all():
        return f"{said}."
    ahead = run.values("scheduled_n") - run.values("executed_n")
    drift = int(ahead[last] - (ahead[first - 1] if first else 0))
    went_on = f", while the scheduler went on: it is {count(int(ahead[last]))} ahead of the executed steps"
    return f"{said}{went_on if drift > 0 else ''}."


def _seen(diagnosed: Diagnosed) -> str:
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    begun = onset(run, first.signal, first.position)
    step = (
        f"at step {cell(run, 'step', first.position)['text']}"
        if begun is None
        else f"in steps {begun[0]} to {begun[1]}"
    )
    if first.reason == "skipped":
        return f"The optimizer's step was attempted but did not execute {step}"
    if first.reason == "not_moved":
        return f"The optimizer's step executed but moved nothing {step}"
    name = label(first.signal)
    subject = name[:1].upper() + name[1:]
    if first.reason == "nonfinite":
        found = cell(run, first.signal, first.position)
        if found["kind"] in ("nan", "inf"):
            return f"{subject} became {found['text']} {step}"
        if first.phase == "forward":
            return f"{subject} became non-finite {step}, where the log holds {found['text']}"
        return f"Gradients became non-finite {step}"
    if first.reason == "drift":
        worst = diagnosed.incident.extent[first.signal].worst
        return f"{subject} began to rise slowly {step}, to {mads(worst.deviation or 0.0)} MADs above its best level"
    if first.reason == "jump":
        return f"{subject} jumped to {scalar(first.signal, first.value)} {step}"
    distance = "" if first.deviation is None else f", {mads(first.deviation)} MADs"
    return f"{subject} left its baseline {step} ({number(first.value)}{distance})"


def _context(diagnosed: Diagnosed, transition: dict[str, Any] | None) -> str:
    """What the transition before was like, for a loss; how far ahead of the loss, for the rest."""
    first = diagnosed.incident.first_bad
    if first.phase == "forward":
        if transition is None:
            return "" if diagnosed.transition_unknown else ", before any transition that executed"
        if any(one.id == CLEAN and one.verdict is Verdict.MATCHED for one in diagnosed.findings):
            return " after a clean transition"
        out = transition["out_of_baseline"]
        with_what = f" with {_list(out)} out of its baseline" if out else ""
        return f" after the transition at step {transition['step']['text']}{with_what}"
    if any(one.id == ORDINARY and one.verdict is Verdict.MATCHED for one in diagnosed.findings):
        return " while the gradient was ordinary"
    if hides_nonfinite(diagnosed.view.run, "loss", first.position):  # it may have been as bad there
        return ""
    ahead = [lead.rows_ahead for lead in diagnosed.incident.lead if lead.signal == first.signal]
    if ahead:
        return f", {ahead[0]} {'row' if ahead[0] == 1 else 'rows'} before the loss did"
    return ""


def _or_else(diagnosed: Diagnosed) -> str:
    """Where else to look, where the line that speaks of what was seen first cannot tell, and another one leads."""
    first = diagnosed.incident.first_bad
    primary = SPEAKS_OF.get((first.phase, first.reason))
    untold = [each for each in diagnosed.findings if each.id == primary and each.verdict is Verdict.CANNOT_TELL]
    return f"; or, as which of the two is not told here, at {untold[0].look.rstrip('.')}" if untold else ""


def _rate(diagnosed: Diagnosed) -> str:
    """The learning rate's jump, where one came before the first bad row: the batch is not what to look at then."""
    run = diagnosed.view.run
    jump = rates(run).jump(diagnosed.incident.first_bad.position)
    if jump is None:
        return ""
    place, before, after = jump
    return f"the learning rate, {number(after / before)} times as high from {name_rows(run, [place])} on; "


def _batch(diagnosed: Diagnosed) -> str:
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    batch = run.text("batch_id", first.position)
    if first.phase != "forward" or batch is None:
        return ""
    return f"batch {shown(batch, LONGEST_NAME)}: "


def _at(diagnosed: Diagnosed, position: int) -> list[Observation]:
    return [seen for seen in diagnosed.incident.observations if seen.position == position]


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
