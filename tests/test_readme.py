"""What the README shows is what happens: its example is run as printed, its output is the real one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def blocks(language: str) -> str:
    fenced = rf"^```{language}\n(.*?)^```$"
    return "\n".join(re.findall(fenced, README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


def test_the_example_records_a_run_that_triage_reads(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-W", "error", "-c", blocks("python")], cwd=tmp_path, check=True)
    triage = [sys.executable, "-m", "spikeview", "triage", "--json", "runs/mlp"]
    answer = subprocess.run(triage, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stderr
    told = json.loads(answer.stdout)
    assert told["rows"] == 200
    drift = next(check for check in told["checks"] if check["id"] == "schedule_drift")
    assert drift["verdict"] == "passed", drift


def test_the_triage_shown_is_what_it_prints() -> None:
    triage = [sys.executable, "-m", "spikeview", "triage", "sample_runs/amp_clock_drift"]
    environment = {**os.environ, "COLUMNS": "100"}
    answer = subprocess.run(triage, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == blocks("text").strip()


def test_links_lead_to_files_of_the_project() -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
