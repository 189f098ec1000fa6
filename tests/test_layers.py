"""What importing each side really loads: package `__init__` files are no edges in the import linter's graph."""

from __future__ import annotations

import subprocess
import sys

import grimp
import pytest

TORCH = {"torch"}
QT = {"PySide6"}
DRAWING = {"jinja2", "matplotlib"}
FRAMEWORKS = {"accelerate", "lightning", "pytorch_lightning", "transformers"}


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules of a fresh interpreter after one import statement."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    ("statement", "barred"),
    [
        ("import recorder", TORCH | QT | DRAWING | {"spikeview"}),
        ("import recorder.schema, recorder.store, recorder.sample_ids", TORCH | QT | DRAWING | {"spikeview"}),
        ("import spikeview.cli", TORCH | QT | DRAWING),
        ("import spikeview.report.content, spikeview.report.export", TORCH | QT),
        ("import spikeview.cli, spikeview.ui.app", TORCH | DRAWING | {"scipy", "rich"}),
    ],
)
def test_import_does_not_load(statement: str, barred: set[str]) -> None:
    assert not loaded_by(statement) & barred


def test_recording_loads_neither_qt_nor_the_desk_side_nor_a_framework() -> None:
    pytest.importorskip("torch")
    loaded = loaded_by("import recorder.integrations; from recorder import FlightRecorder")
    assert "torch" in loaded
    assert not loaded & (QT | FRAMEWORKS | {"spikeview"})


def test_the_window_is_drawn_with_qt() -> None:
    assert "PySide6" in loaded_by("import spikeview.ui.app")


def test_of_the_recorder_the_desk_side_sees_only_what_is_written_and_how() -> None:
    graph = grimp.build_graph("recorder", "spikeview", exclude_type_checking_imports=True, cache_dir=None)
    seen = {
        imported
        for module in graph.find_descendants("spikeview")
        for imported in graph.find_modules_directly_imported_by(module)
        if imported.partition(".")[0] == "recorder"
    }
    assert seen
    assert {".".join(name.split(".")[:2]) for name in seen} <= {
        "recorder.sample_ids",
        "recorder.schema",
        "recorder.store",
    }
