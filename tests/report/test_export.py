from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from spikeview.report import ReportError, content, write_report
from spikeview.rules.diagnosis import Diagnosis


def test_the_json_face_is_the_content(skips: Diagnosis, tmp_path: Path) -> None:
    destination = tmp_path / "incident.json"
    assert write_report(skips, 1, destination) == destination
    assert json.loads(destination.read_text("utf-8")) == content(skips, 1)


@pytest.mark.parametrize("name", ["incident.pdf", "incident"])
def test_an_unknown_suffix_gets_one_line(explosion: Diagnosis, tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError) as caught:
        write_report(explosion, None, tmp_path / name)
    assert str(caught.value).startswith(
        f"Cannot tell the report's format from {name}: its suffix must be .html, .md or .json"
    )
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(
    explosion: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = tmp_path / "incident.md"
    destination.write_text("the old report", "utf-8")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportError, match=r"Cannot write .*incident\.md: No space left on device\."):
        write_report(explosion, None, destination)
    assert destination.read_text("utf-8") == "the old report"
    assert list(tmp_path.iterdir()) == [destination]


def test_a_report_replaces_the_old_one(explosion: Diagnosis, healthy: Diagnosis, tmp_path: Path) -> None:
    destination = write_report(explosion, None, tmp_path / "incident.md")
    write_report(healthy, None, destination)
    assert destination.read_text("utf-8").startswith("# healthy: no incident")


def test_a_folder_that_is_not_there_gets_one_line(explosion: Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="No such file or directory"):
        write_report(explosion, None, tmp_path / "nowhere" / "incident.md")


@pytest.mark.parametrize(("library", "name"), [("jinja2", "incident.md"), ("matplotlib", "incident.html")])
def test_a_missing_library_gets_one_line(
    explosion: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    for loaded in [module for module in sys.modules if module.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ReportError, match=rf'needs {library}.*pip install "spikeview\[report\]"'):
        write_report(explosion, None, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_json_face_needs_no_library(explosion: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("jinja2", "matplotlib"):
        for loaded in [module for module in sys.modules if module.split(".")[0] == library]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, library, None)
    assert write_report(explosion, None, tmp_path / "incident.json").exists()
