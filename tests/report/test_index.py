"""A folder of runs becomes a folder of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spikeview.cli import main
from spikeview.commands.diagnosing import diagnosing
from spikeview.importers import Asked
from spikeview.report.errors import ReportError
from spikeview.report.index import write_index
from tests.report.conftest import sketched
from tests.report.test_html import Page

SAMPLES = Path(__file__).parents[2] / "sample_runs"


@pytest.fixture(autouse=True, scope="module")
def quick_figures() -> Iterator[None]:
    with sketched():
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, one of them deeper, one that is damaged, and what is none."""
    place = tmp_path / "runs"
    shutil.copytree(SAMPLES / "bf16_explosion", place / "a run")
    shutil.copytree(SAMPLES / "healthy", place / "deeper" / "healthy")
    shutil.copytree(SAMPLES / "healthy", place / "broken")
    (place / "broken" / "run.json").write_text("{}")
    (place / "notes.txt").write_text("no run")
    return place


def test_the_index_leads_to_every_run_and_says_what_was_not_read(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["report", str(runs), "-o", str(out), "--note", "<b>weekly</b>"]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["a-run.html", "deeper-healthy.html", "index.html"]
    page = Page((out / "index.html").read_text("utf-8"))
    assert [attributes["href"] for tag, attributes in page.tags if tag == "a"] == ["a-run.html", "deeper-healthy.html"]
    for text in ("3 runs, 1 with incidents", "Loss left its baseline at step 6", "Not read:", "<b>weekly</b>"):
        assert text in page.text
    assert "b" not in [tag for tag, _ in page.tags]
    assert "bf16" not in page.text
    assert "Loss left its baseline at step 6" in (out / "a-run.html").read_text("utf-8")


def test_an_index_is_a_folder_and_is_replaced_only_where_that_is_asked_for(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs), "-o", str(tmp_path / "x.html")]) == 2
    assert "There are 3 runs, and x.html is one file. Give a folder" in capsys.readouterr().err
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert main(["report", str(runs), "-o", str(out)]) == 2
    assert "out exists. Choose another name, or replace it with --force." in capsys.readouterr().err
    assert [file.name for file in out.iterdir()] == ["mine.txt"]
    assert main(["report", str(runs), "-o", str(out), "--force"]) == 0
    assert (out / "mine.txt").read_text() == "mine"
    assert (out / "index.html").exists()


def test_an_index_that_fails_leaves_nothing(runs: Path, tmp_path: Path) -> None:
    def full(text: str) -> None:
        if text.startswith("run 3"):
            raise OSError(28, "No space left on device")

    with pytest.raises(ReportError, match=r"Cannot write .*out: No space left on device\."):
        write_index(diagnosing(str(runs), None, Asked()), tmp_path / "out", told=full)
    assert list(tmp_path.iterdir()) == [runs]


def test_pages_of_runs_of_like_names_stay_apart(tmp_path: Path) -> None:
    for name in ("a b", "a+b", "index"):
        shutil.copytree(SAMPLES / "amp_clock_drift", tmp_path / "runs" / name)
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out")]) == 0
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["a-b-2.html", "a-b.html", "index-2.html", "index.html"]
