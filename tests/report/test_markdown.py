from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spikeview.report.export import write_report
from spikeview.report.markdown import code, prose
from spikeview.rules.diagnosis import Diagnosis

markdown_it = pytest.importorskip("markdown_it", reason="needs markdown-it-py to render what was written")

HOSTILE = [
    "a|b\nc|d",
    "`tick` and ``two``",
    "back\\slash\\| pipe",
    "<script>alert(1)</script> & <b>",
    "*bold* _it_ ~~gone~~ [link](https://example.org)",
    "- item",
    "1. first",
    "# head",
]


def render(text: str) -> str:
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return str(parser.render(text))


def words(html: str) -> str:
    """What a reader sees of one table cell."""
    import html as entities
    import re

    return entities.unescape(re.sub(r"<[^>]*>", "", html))


def written(diagnosis: Diagnosis, folder: Path) -> str:
    return write_report(diagnosis, None, folder / "incident.md").read_text("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("escape", [prose, code])
def test_text_in_a_cell_shows_as_itself(escape: Callable[[object], str], text: str) -> None:
    html = render(f"| a | b |\n|---|---|\n| {escape(text)} | end |\n")
    assert html.count("<td>") == 2
    assert words(html.split("<td>")[1]).strip() == " ".join(text.split())
    for tag in ("<script", "<b>", "<em>", "<strong>", "<s>", "<a "):
        assert tag not in html


@pytest.mark.parametrize("text", HOSTILE)
def test_a_paragraph_stays_a_paragraph(text: str) -> None:
    html = render(prose(text))
    assert html.startswith("<p>")
    assert words(html).strip() == " ".join(text.split())


def test_a_name_calls_nobody() -> None:
    assert prose("seen by @someone in #12") == "seen by @<!-- -->someone in #<!-- -->12"
    assert code("@someone") == "`@someone`"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_table_of_the_report_is_broken(hostile: Callable[[str], Diagnosis], tmp_path: Path, text: str) -> None:
    source = written(hostile(text), tmp_path)
    html = render(source)
    tables = [table.split("</table>")[0] for table in html.split("<table>")[1:]]
    plain = render(written(hostile("plain"), tmp_path))
    assert len(tables) == plain.count("<table>")
    for table in tables:
        rows = [row.count("<td") + row.count("<th>") + row.count("<th ") for row in table.split("<tr>")[1:]]
        assert len(set(rows)) == 1
    assert html.count("<td") == plain.count("<td")
    assert "<script" not in html


def test_the_same_content_as_the_page(skips: Diagnosis, tmp_path: Path) -> None:
    text = written(skips, tmp_path)
    assert "1. [Incident 1](#incident-1): Pre-clip norm became Inf at step 2" in text
    assert "| 2 | 2 | 4.174 | **Inf** ▲ | — | 0.04512 | 65536 | 3/2/3 | — | — | `c` | × skipped ◀ first bad |" in text
    assert (
        "- **failed**: Scheduler ahead of executed steps. scheduled 8, executed 5: 3 ahead at rows 2, 3, 6.\n" in text
    )


def test_figures_are_lines_of_text_with_marks(skips: Diagnosis, explosion: Diagnosis, tmp_path: Path) -> None:
    text = written(skips, tmp_path)
    assert "\nloss                     ▁█▂▂▅▅◆▄  3.182 to 7.989\n" in text
    assert "\ncosine                   █▇××▁▆×▄  0.8420 to 1\n" in text
    assert "▁▁▁▁▁▁▅█████  0.04170 to 6.020e+15 (log)" in written(explosion, tmp_path)


def test_an_issue_tracker_takes_the_report_of_a_run_with_many_incidents(explosion: Diagnosis, tmp_path: Path) -> None:
    [one] = explosion.incidents
    events = tuple({"kind": "note", "row": at % 12, "text": f"a note of the loop, number {at}"} for at in range(500))
    run = replace(explosion.run, events=events, _cache={})
    many = replace(explosion, run=run, incidents=(replace(one, view=replace(one.view, run=run)),) * 500)
    text = written(many, tmp_path)
    assert len(text) < 65_536
    assert text.count("### Timeline") == 3
    assert "Listed only; `--incident N` tells of one: 4 (loss, step 6), 5 (loss, step 6)" in text
    assert "and 297 more." in text
