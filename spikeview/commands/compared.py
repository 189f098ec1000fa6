"""A comparison of two runs as lines for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from spikeview.commands.lines import BLANK, Item, heading, item
from spikeview.format import number, plural, shown
from spikeview.report.markdown import prose
from spikeview.rules.comparison import SUCCESS, Answer, Comparison, conclude
from spikeview.rules.comparison.pair import Aftermath

ANSWERS = {
    Answer.BETTER: "better than the baseline",
    Answer.ALIKE: "like the baseline",
    Answer.CANNOT_TELL: "cannot tell",
    Answer.HARDLY_MOVES: "never diverges because it hardly moves",
    Answer.LEARNS_LESS: "learns less than the baseline",
    Answer.STILL_UNSTABLE: "still unstable",
    Answer.LESS_STABLE: "less stable than the baseline",
}
STYLES = {Answer.BETTER: "bold green", Answer.ALIKE: "bold green", Answer.CANNOT_TELL: "bold yellow"}
HEADS = ("", "baseline", "run", "ratio")
WIDTHS = (39, 13, 13, 11)
LONGEST = 40
MOST = 10
NONE = "—"

Row = tuple[str, ...]


def comparison_items(comparison: Comparison) -> Iterator[Item]:
    """The answer first, then the tables it rests on."""
    found = conclude(comparison)
    names = [shown(trace.run.name) for trace in (comparison.run, comparison.baseline)]
    over = f"  over {plural(comparison.horizon, 'executed step')}: "
    style = STYLES.get(found.answer, "bold red")
    yield (
        Text(),
        Text.assemble((names[0], "bold"), " beside ", (names[1], "bold"), over, (ANSWERS[found.answer], style)),
    )
    mark, colour = ("+", "green") if found.answer in SUCCESS else ("x", "red")
    yield item(mark, colour, found.why)
    for note in found.notes:
        yield item("-", "", note)
    for title, rows in tables(comparison):
        yield BLANK
        yield heading(title)
        for row in rows:
            yield (
                Text("  "),
                Text("".join(_cell(text, width, at) for at, (text, width) in enumerate(zip(row, WIDTHS, strict=True)))),
            )


def comparison_markdown(comparison: Comparison) -> str:
    """The same as a title, a list and tables."""
    found = conclude(comparison)
    names = [prose(shown(trace.run.name)) for trace in (comparison.run, comparison.baseline)]
    lines = [f"# {names[0]} beside {names[1]}: {ANSWERS[found.answer]}", "", f"**{prose(found.why)}.**", ""]
    lines += [f"- {prose(note)}" for note in found.notes]
    for title, rows in tables(comparison):
        head, *body = rows
        lines += ["", f"## {title}", "", _line(head), "|---|---:|---:|---:|", *map(_line, body)]
    return "\n".join(lines) + "\n"


def tables(comparison: Comparison) -> Iterator[tuple[str, list[Row]]]:
    """Title, head and rows of each table, as text."""
    yield (
        "Losses on the way",
        [
            ("after executed steps", *HEADS[1:]),
            *(
                (f"{each.steps:,}", _text(each.baseline), _text(each.run), _text(each.ratio))
                for each in comparison.trajectory
            ),
        ],
    )
    measured = [each for each in comparison.measures if each.baseline is not None or each.run is not None]
    rows = [
        (f"{each.title}{_unit(each.unit)}", _text(each.baseline), _text(each.run), _text(each.ratio))
        for each in measured
    ]
    yield "Measured", [HEADS, *rows]
    if comparison.outliers:
        outliers = [
            (f"{shown(each.batch, LONGEST)}, row {each.row}", _after(each.baseline), _after(each.run), "")
            for each in comparison.outliers[:MOST]
        ]
        yield "Rows that a bad batch cost", [("batch", "baseline", "run", ""), *outliers]
    if comparison.changes:
        changed = [
            (shown(each.name, LONGEST), *(shown(text or NONE, LONGEST) for text in (each.baseline, each.run)), "")
            for each in comparison.changes[:MOST]
        ]
        yield "Settings that differ", [("setting", "baseline", "run", ""), *changed]


def _cell(text: str, width: int, at: int) -> str:
    return f"{text:<{width}}" if at == 0 else f"{text:>{width}}"


def _line(row: Sequence[str]) -> str:
    return f"| {' | '.join(map(prose, row))} |"


def _text(value: float | None) -> str:
    return NONE if value is None else number(value)


def _after(aftermath: Aftermath | None) -> str:
    return "none" if aftermath is None else f"{aftermath.rows:,} {aftermath.persistence}"


def _unit(unit: str) -> str:
    return f" ({unit})" if unit else ""
