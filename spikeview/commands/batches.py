"""`spikeview batches RUN --sample ID`: which batches held a sample."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from spikeview.commands.choices import ALL, rank_or_all
from spikeview.commands.reading import read, read_ranks
from spikeview.commands.status import NOTHING_FOUND, CommandError

if TYPE_CHECKING:
    from spikeview.ranks import Ranks


@click.command(short_help="Find the batches that held a sample, or list the samples of a batch.")
@click.argument("run")
@click.option("--sample", metavar="ID", help="The sample to look for: its index in the dataset, or its name.")
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="List the samples of this row's batch instead.")
@click.option("--shared", is_flag=True, help="List the samples that several incidents began with instead.")
@click.option("--rank", callback=rank_or_all, default=ALL, metavar="K|all", help="The rank to read; else all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def batches(run: str, sample: str | None, row: int | None, shared: bool, rank: int | str, as_json: bool) -> int:
    """Name the rows of RUN whose batch held a sample, and the incidents that they lie in.

    The run must have been recorded with the batch ids of recorder.data.identified (docs/batch_ids.md).

    Exit status: 0 searched, whatever was found; 2 the run could not be read, or its batch ids do not name samples.
    """
    if (sample is not None) + (row is not None) + shared != 1:
        raise click.UsageError("give one of --sample ID, --row N and --shared")
    ranks = read_ranks(run) if isinstance(rank, str) else _one(run, rank)
    _check_lists(ranks)
    if shared:
        _share(ranks, as_json)
    elif row is not None:
        _list(ranks, row, as_json)
    elif sample is not None:
        _search(ranks, sample, as_json)
    return NOTHING_FOUND


def _one(path: str, rank: int) -> Ranks:
    from spikeview.ranks import Ranks

    return Ranks(path, {rank: read(path, rank)})


def _search(ranks: Ranks, sample: str, as_json: bool) -> None:
    from spikeview.commands.faces import print_json
    from spikeview.commands.held import held_items
    from spikeview.commands.lines import show
    from spikeview.rules.across_ranks import diagnose_ranks
    from spikeview.rules.samples import batches_with

    diagnosis = diagnose_ranks(ranks)
    numbered = re.fullmatch(r"-?[0-9]{1,20}", sample) is not None
    found = batches_with(int(sample), ranks.runs, diagnosis) if numbered else []
    found = found or batches_with(sample, ranks.runs, diagnosis)
    if as_json:
        rows = sum(len(run) for run in ranks.runs.values())
        print_json(
            {
                "run": ranks.path,
                "sample": int(sample) if numbered else sample,
                "ranks": list(ranks.runs),
                "rows": rows,
                "batches": [held.plain() for held in found],
            }
        )
    else:
        show(held_items(ranks, sample, found))


def _share(ranks: Ranks, as_json: bool) -> None:
    from spikeview.commands.faces import print_json
    from spikeview.commands.held import shared_items
    from spikeview.commands.lines import show
    from spikeview.rules.across_ranks import diagnose_ranks
    from spikeview.rules.samples import shared_samples

    found, count = shared_samples(diagnose_ranks(ranks))
    if as_json:
        told = [{"sample": sample, "incidents": numbers} for sample, numbers in found.items()]
        print_json({"run": ranks.path, "incidents": count, "shared": told})
    else:
        show(shared_items(found, count))


def _list(ranks: Ranks, row: int, as_json: bool) -> None:
    """The samples of one row's batch, on each rank that was read."""
    import numpy as np

    from recorder.sample_ids import from_text
    from spikeview.commands.faces import print_json
    from spikeview.format import plural, printable

    listed = []
    for rank, run in ranks.runs.items():
        for at in np.flatnonzero(run.recorded("row") & (run.values("row") == row))[:1].tolist():
            text = run.text("batch_id", at)
            listed.append({"rank": rank, "row": row, "batch_id": text, "samples": text and from_text(text)})
    if not listed:
        raise CommandError(f"{ranks.path}: has no row {row}; its last is {_last_row(ranks)}")
    if as_json:
        print_json({"run": ranks.path, "batches": listed})
        return
    for each in listed:
        samples = each["samples"]
        if not isinstance(samples, list):
            click.echo(f"rank {each['rank']}, row {row}: its batch id names no samples")
            continue
        click.echo(f"rank {each['rank']}, row {row}: {plural(len(samples), 'sample')}")
        click.echo(printable(" ".join(str(sample) for sample in samples)))


def _last_row(ranks: Ranks) -> int:
    return max(int(run.values("row")[-1]) for run in ranks.runs.values() if len(run))


def _check_lists(ranks: Ranks) -> None:
    from spikeview.format import shown
    from spikeview.rules.samples import first_ids, lists_samples

    if any(lists_samples(run) for run in ranks.runs.values()):
        return
    first = next((text for run in ranks.runs.values() for text in first_ids(run)), None)
    what = "has no batch ids" if first is None else f"its batch ids name no samples ({shown(first, 40)})"
    raise CommandError(f"{ranks.path}: {what}; record with `for ids, batch in recorder.data.identified(loader)`")
