from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spikeview.report.export import write_report
from spikeview.rules.diagnosis import Diagnosis

ATTACK = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"' {{ 7 * 7 }}"

SECTIONS = [
    "What is known, and where to look",
    "The transition before the first bad observation",
    "Neighbouring rows",
    "Timeline",
    "Layers that carried the norm",
    "Last known-good checkpoint",
    "Batches to feed again, and how",
    "What cannot be told, and which column would tell",
    "What is ruled out",
    "Checks on the whole run",
    "Common mistakes",
    "Before the next launch",
    "Manifest",
]


class Page(HTMLParser):
    """Every tag with its attributes, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def written(diagnosis: Diagnosis, folder: Path, incident: int | None = None) -> str:
    return write_report(diagnosis, incident, folder / "incident.html").read_text("utf-8")


def test_the_page_fetches_nothing(skips: Diagnosis, tmp_path: Path) -> None:
    html = written(skips, tmp_path)
    page = Page(html)
    links = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "data", "action")
    ]
    assert links
    assert all(value is not None and value.startswith("#") for value in links)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert "@import" not in html


def test_free_text_is_only_ever_text(hostile: Callable[[str], Diagnosis], tmp_path: Path) -> None:
    diagnosis = hostile(ATTACK)
    page = Page(write_report(diagnosis, None, tmp_path / "x.html", note=f"mine: {ATTACK}").read_text("utf-8"))
    assert f"mine: {ATTACK}" in page.text
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert (
        page.text.count(ATTACK) >= 10
    )  # batch, optimizer, evidence, look, manifest key and value, note, event, checks
    assert diagnosis.run.name in page.text


def test_ids_are_unique_and_the_table_of_contents_leads_to_each_incident(skips: Diagnosis, tmp_path: Path) -> None:
    page = Page(written(skips, tmp_path))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    contents = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert contents == ["#incident-1", "#incident-2"]
    assert {"incident-1", "incident-2"} <= set(ids)


def test_one_incident_needs_no_table_of_contents(explosion: Diagnosis, tmp_path: Path) -> None:
    page = Page(written(explosion, tmp_path, 1))
    assert "nav" not in [tag for tag, _ in page.tags]
    assert "Loss left its baseline at step 6" in page.text


def test_a_healthy_run_shows_its_figure_checks_and_manifest(healthy: Diagnosis, tmp_path: Path) -> None:
    page = Page(written(healthy, tmp_path))
    assert "svg" in [tag for tag, _ in page.tags]
    for text in ("No incident in 3 rows", "Skip rate", "seed", "No check failed."):
        assert text in page.text


def test_what_a_cell_can_be_is_in_words(skips: Diagnosis, tmp_path: Path) -> None:
    page = Page(written(skips, tmp_path))
    for text in ("not applicable", "not recorded", "Inf ▲", "NaN ◆", "× skipped", "◀ first bad", "transition"):
        assert text in page.text


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_every_part_of_the_content_has_its_section(explosion: Diagnosis, tmp_path: Path, suffix: str) -> None:
    text = write_report(explosion, None, tmp_path / f"x{suffix}").read_text("utf-8")
    found = re.findall(r"<h3>(.*)</h3>", text) if suffix == ".html" else re.findall(r"### (.*)|<summary>(.*)</s", text)
    heads = [head if isinstance(head, str) else "".join(head) for head in found]
    assert [head for head in heads if head in SECTIONS] == SECTIONS
    assert "It would take: " in text


def test_the_next_step_stands_beside_its_finding(explosion: Diagnosis, tmp_path: Path) -> None:
    [one] = explosion.incidents
    findings = [replace(each, next="feed <it> again") for each in one.findings]
    told = replace(explosion, incidents=(replace(one, findings=findings),))
    assert "Next, to prove it wrong: Feed <it> again." in Page(written(told, tmp_path)).text
    markdown = write_report(told, None, tmp_path / "x.md").read_text("utf-8")
    assert "Next, to prove it wrong: feed &#60;it&#62; again." in markdown
