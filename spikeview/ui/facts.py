"""What a run says of itself in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recorder.store.lazy_table import distinct_texts
from spikeview.format import count, printable, shown
from spikeview.run import Run
from spikeview.ui.log_columns import told_of_log
from spikeview.ui.places import segment_starts


def facts(run: Run) -> list[tuple[str, str]]:
    """Name and text, only of what was recorded."""
    told = [
        ("rows", count(len(run))),
        ("executed", count(int(run.values("executed").sum())) if run.holds("executed") else ""),
        ("segments", _segments(run)),
        ("precision", ", ".join(_texts(run, "precision"))),
        ("optimizer", ", ".join(_optimizers(run.manifest))),
        ("scaler", "GradScaler" if _part(run.manifest, "scaler").get("enabled") else ""),
        ("model", str(_part(run.manifest, "model").get("class", ""))),
        ("device", str(run.manifest.get("device", ""))),
        ("torch", str(_part(run.manifest, "recorder").get("torch", ""))),
    ]
    told += told_of_log(run)
    return [(name, shown(text)) for name, text in told if text] + [("note", printable(note)) for note in run.notes]


def _segments(run: Run) -> str:
    if not run.holds("segment"):
        return ""
    resumed = segment_starts(run).tolist()
    steps = ", ".join(count(int(run.values("step")[position])) for position in resumed)
    return f"{len(resumed) + 1} (resume {steps})" if resumed else "1"


def _texts(run: Run, column: str) -> list[str]:
    return [str(text) for text in distinct_texts(run.table, column) if text] if column in run else []


def _optimizers(manifest: Mapping[str, Any]) -> list[str]:
    """`SGD · StepLR`, one for each optimizer."""
    told = []
    for one in _part(manifest, "optimizers").values():
        names = (one.get("class"), _part(one, "scheduler").get("class")) if isinstance(one, Mapping) else ()
        told.append(" · ".join(str(name) for name in names if name))
    return told


def _part(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested part of a manifest, which a foreign or older writer may have left out."""
    found = manifest.get(name)
    return found if isinstance(found, Mapping) else {}
