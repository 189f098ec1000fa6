"""The examples of docs/integrations.md are run as printed, and what frameworks are missing is said in a line."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
NEEDS = {
    "Hugging Face": "transformers",
    "Accelerate": "accelerate",
    "Lightning": "lightning",
    "Trackers": "tensorboardX",
}
ROWS = {"Hugging Face": 24, "Accelerate": 8, "Lightning": 8, "Checkpoints and resumes": 40, "Trackers": 40}


def example(section: str) -> str:
    found = re.search(rf"^## {section}\n.*?^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated")
@pytest.mark.parametrize("section", ROWS)
def test_the_example_records_what_it_trains(section: str, tmp_path: Path) -> None:
    if section in NEEDS:
        pytest.importorskip(NEEDS[section])
    exec(compile(example(section), section, "exec"), {"__name__": "example"})  # noqa: S102  # what the page shows
    run = open_run(tmp_path / "runs" / "mlp")
    assert len(run) == ROWS[section]
    failed = [check.id for check in diagnose(run).checks if check.outcome.value == "failed"]
    assert "resume_incomplete" not in failed
    assert "schedule_drift" not in failed
    assert run.recorded("loss").all()


@pytest.mark.parametrize(
    ("name", "needs"), [("huggingface", "transformers"), ("accelerate", "accelerate"), ("lightning", "lightning")]
)
def test_a_missing_framework_is_named_with_what_to_install(name: str, needs: str, monkeypatch: Any) -> None:
    for module in [needs, "lightning.pytorch", "pytorch_lightning"]:
        monkeypatch.setitem(sys.modules, module, None)
    for module in [each for each in sys.modules if each.startswith(f"recorder.integrations.{name}")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ImportError, match=rf"pip install 'spikeview\[{name}\]'"):
        import_module(f"recorder.integrations.{name}")
