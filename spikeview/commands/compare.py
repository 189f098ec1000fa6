"""`spikeview compare BASELINE RUN`: whether a change did more than remove what was not finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import log_choices
from spikeview.commands.places import only
from spikeview.commands.reading import read
from spikeview.commands.status import FOUND, NOTHING_FOUND

if TYPE_CHECKING:
    from spikeview.importers import Asked


@click.command(short_help="Compare a run with a baseline: what a change did beside removing spikes.")
@click.argument("baseline")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, to paste where colleagues read it.")
@click.option("--rank", type=click.IntRange(min=0), metavar="K", help="The rank to read of both.")
@log_choices
def compare(baseline: str, run: str, as_json: bool, as_markdown: bool, rank: int | None, asked: Asked) -> int:
    """Compare RUN with BASELINE over as many executed steps as both have.

    Losses on the way, raw norms, clipping, updates, speed, memory, and what became of the batches that began incidents
    in the baseline. A run that never diverges because it hardly moves is named as such.

    Exit status: 0 better than the baseline, or alike; 1 not; 2 a run could not be read, 3 a fault of spikeview itself.
    """
    from spikeview.commands.compared import comparison_items, comparison_markdown
    from spikeview.commands.faces import print_json
    from spikeview.commands.lines import show
    from spikeview.rules.comparison import SUCCESS, conclude
    from spikeview.rules.comparison import compare as compared
    from spikeview.rules.comparison.told import as_plain
    from spikeview.rules.diagnosis import diagnose

    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    found = compared(*(diagnose(read(only(path), rank, asked)) for path in (baseline, run)))
    if as_json:
        print_json(as_plain(found))
    elif as_markdown:
        click.echo(comparison_markdown(found), nl=False)
    else:
        show(comparison_items(found))
    return NOTHING_FOUND if conclude(found).answer in SUCCESS else FOUND
