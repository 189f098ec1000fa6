"""Many incidents, texts that are no texts, numbers at the ends of the doubles, and places that are no places."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recorder.store import is_run, read_run
from spikeview.report.errors import ReportError
from spikeview.report.export import DRAWN, render, write_report
from spikeview.rules.diagnosis import Diagnosis, diagnose
from tests.report.conftest import make_run, sketched

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_runs" / "healthy"
UNSEEN = "\x1b[31m\x07\u202e\x85\u2028"


def of_many(diagnosis: Diagnosis, count: int, critical: set[int]) -> Diagnosis:
    [one] = diagnosis.incidents
    severities = ["critical" if number in critical else "warning" for number in range(1, count + 1)]
    many = tuple(replace(one, incident=replace(one.incident, severity=severity)) for severity in severities)
    return replace(diagnosis, incidents=many)


@pytest.fixture
def quick_figures() -> Iterator[None]:
    """What is drawn is not the matter, but of which incidents."""
    with sketched():
        yield


@pytest.mark.usefixtures("quick_figures")
def test_of_many_incidents_the_most_severe_are_drawn_and_all_are_told(explosion: Diagnosis) -> None:
    heard: list[str] = []
    page = render(of_many(explosion, 25, {20, 24}), None, Path("x.html"), heard.append)
    drawn = [number for number in range(1, 26) if f'id="i{number}-' in page]
    assert drawn == [1, 2, 3, 4, 5, 6, 7, 8, 20, 24]
    assert page.count('<section class="incident"') == 25
    assert "Figures are drawn for the 10 most severe incidents; the others are told in words." in page
    assert page.count("Not drawn") == 25 - DRAWN
    assert "--incident 9</code>" in page
    assert heard[:2] == ["putting it into words", "drawing figure 1 of 10"]
    assert len(heard) == DRAWN + 2


@pytest.mark.usefixtures("quick_figures")
def test_few_incidents_are_all_drawn(explosion: Diagnosis) -> None:
    page = render(of_many(explosion, 10, set()), None, Path("x.html"))
    assert "Not drawn" not in page
    assert "most severe" not in page


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_what_acts_instead_of_being_seen_is_written_as_its_code(
    hostile: Callable[[str], Diagnosis], suffix: str
) -> None:
    text = render(hostile(f"a{UNSEEN}b"), None, Path(f"x{suffix}"))
    assert not set(UNSEEN) & set(text) - set("[31m")
    plain = text.replace("&#92;", "\\").replace("&#91;", "[")
    assert plain.count(r"a\x1b[31m\x07\u202e\x85\u2028b") > 10
    text.encode()


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_a_text_without_end_is_cut(hostile: Callable[[str], Diagnosis], suffix: str) -> None:
    text = render(hostile("x" * 100_000), None, Path(f"x{suffix}"))
    assert "… (100,000 characters)" in text
    assert len(text) < 500_000
    assert "x" * 3000 not in text


@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        ([1e305] * 300, [5e-324] * 300),
        ([1.79e308, -1.79e308] * 150, [5e-324, 1.79e308] * 150),
        (list(5e-324 * np.arange(300)), list(1e308 + 1e300 * np.arange(300))),
    ],
)
def test_every_double_can_be_drawn(explosion: Diagnosis, loss: list[float], norm: list[float]) -> None:
    run = make_run({"loss": loss, "grad_norm": norm, "max_norm": [1e308] * 300, "clip_coef": [1e-320] * 300})
    [view] = explosion.views
    shown = replace(explosion, run=run, views=(replace(view, run=run, baselines={}),), incidents=())
    assert "<svg" in render(shown, None, Path("x.html"))
    assert "Made by" in render(shown, None, Path("x.md"))


@pytest.mark.parametrize("name", ["run.json", "mine.json", "captures/report.md", "report.html"])
def test_nothing_is_written_into_a_run(explosion: Diagnosis, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLE, run)
    (run / "captures").mkdir()
    (tmp_path / "link").symlink_to(run)
    before = (run / "run.json").read_bytes()
    for place in (run, tmp_path / "link"):
        with pytest.raises(ReportError, match=r"lies within the run .*/run, which is left as it is\. Choose another"):
            write_report(explosion, None, place / name)
    assert (run / "run.json").read_bytes() == before
    assert not (run / name).exists() or name == "run.json"


def test_a_folder_with_some_other_run_json_takes_a_report(explosion: Diagnosis, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert write_report(explosion, None, tmp_path / "report.md").exists()


def test_a_report_is_no_manifest(explosion: Diagnosis, tmp_path: Path) -> None:
    write_report(explosion, None, tmp_path / "run.json")
    assert is_run(tmp_path)
    with pytest.raises(Exception, match="is a document of another kind, not the manifest of a run"):
        read_run(tmp_path)


def test_the_longest_name_there_may_be(explosion: Diagnosis, tmp_path: Path) -> None:
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") if hasattr(os, "pathconf") else 240
    destination = tmp_path / ("x" * (longest - 3) + ".md")
    assert write_report(explosion, None, destination).exists()


@pytest.mark.parametrize("name", ["a\0b.md", "x" * 5000 + ".md", "a\ud800.md"])
def test_a_name_that_is_none_gets_one_line(explosion: Diagnosis, tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError, match="Cannot write"):
        write_report(explosion, None, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_drawn_without_a_home_and_leaves_nothing_behind(tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    home.write_text("no directory, so that nobody can write there")
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "spikeview", "report", str(SAMPLE), "-o", str(tmp_path / "x.html")],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MPL"))},
            "HOME": str(home),
            "TMPDIR": str(place),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(place.iterdir()) == []


def test_a_home_is_left_as_it_was(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MPL"))}
    command = [sys.executable, "-m", "spikeview", "report", str(SAMPLE), "-o", str(tmp_path / "x.html")]
    subprocess.run(command, cwd=ROOT, env={**clean, "HOME": str(home)}, capture_output=True, check=True)
    assert list(home.iterdir()) == []


def test_the_report_of_a_diagnosed_run_with_the_largest_doubles(tmp_path: Path) -> None:
    run = make_run({"loss": [2.0] * 250 + [1.79e308] * 3, "executed": [True] * 253, "attempted": [True] * 253})
    assert write_report(diagnose(run), None, tmp_path / "x.html").exists()
