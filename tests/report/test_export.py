from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from spikeview.cli import main
from spikeview.report.content import content
from spikeview.report.errors import ReportError
from spikeview.report.export import write_report
from spikeview.rules.diagnosis import Diagnosis

SAMPLE = Path(__file__).parents[2] / "sample_runs" / "bf16_explosion"


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


@pytest.mark.parametrize("name", ["incident.html", "incident.md", "incident.json"])
def test_nothing_is_overwritten_where_that_is_not_asked_for(explosion: Diagnosis, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", "utf-8")
    with pytest.raises(ReportError, match=r"exists\. Choose another name, or replace it with --force\."):
        write_report(explosion, None, tmp_path / name, replace=False)
    assert (tmp_path / name).read_text("utf-8") == "mine"


@pytest.mark.parametrize("links", [True, False])
def test_what_comes_to_lie_there_meanwhile_is_not_overwritten(
    explosion: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    destination = tmp_path / "incident.md"
    if not links:

        def unsupported(source: object, target: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", unsupported)
    write_report(explosion, None, destination, replace=False)
    destination.unlink()

    def meanwhile(text: str) -> None:
        if text == "writing":
            destination.write_text("another's", "utf-8")

    with pytest.raises(ReportError, match="exists"):
        write_report(explosion, None, destination, replace=False, told=meanwhile)
    assert destination.read_text("utf-8") == "another's"
    assert list(tmp_path.iterdir()) == [destination]


def test_who_is_told_of_the_progress_can_end_it(explosion: Diagnosis, tmp_path: Path) -> None:
    heard: list[str] = []

    class EnoughError(Exception):
        pass

    def stop(text: str) -> None:
        heard.append(text)
        if text.startswith("drawing"):
            raise EnoughError

    with pytest.raises(EnoughError):
        write_report(explosion, None, tmp_path / "incident.html", told=stop)
    assert heard == ["putting it into words", "drawing figure 1 of 1"]
    assert list(tmp_path.iterdir()) == []


def test_a_pdf_is_printed_from_a_browser(explosion: Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"not \.pdf\. For a PDF, print the \.html from a browser\."):
        write_report(explosion, None, tmp_path / "incident.pdf")


def test_the_command_takes_a_note_some_incidents_and_does_not_overwrite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = str(SAMPLE), str(tmp_path / "x.json")
    assert main(["report", run, "--incident", "1", "--rows", "1", "--note", "by hand", "-o", out]) == 0
    said = json.loads(Path(out).read_text("utf-8"))
    assert (said["note"], said["title"]) == ("by hand", "Incident 1 of 1 in bf16_explosion")
    assert [row["row"] for row in said["incidents"][0]["neighbours"]] == [4, 5, 6, 7]
    capsys.readouterr()
    assert main(["report", run, "-o", out]) == 2
    assert capsys.readouterr().err == f"spikeview: {out} exists. Choose another name, or replace it with --force.\n"
    assert main(["report", run, "-o", out, "--force"]) == 0
    assert main(["report", run, "-o", out, "--force", "--incident", "2"]) == 2
    assert "There is no incident 2" in capsys.readouterr().err
