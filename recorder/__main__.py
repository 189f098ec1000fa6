"""Commands of the training side: `python -m recorder COMMAND`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recorder.amp_log import write_csv, write_csv_file
from recorder.statuses import refuse
from recorder.statuses import run as run_command
from recorder.store import StoreError
from recorder.upkeep import repair_command, verify_command


@click.group()
def main() -> None:
    """Commands of the flight recorder.

    Exit status: 0 done, 1 what a command itself answers with, 2 refused, 3 a fault of the recorder's own.
    """


main.add_command(verify_command)
main.add_command(repair_command)


@main.command("csv")
@click.argument("run")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="a file; standard output without")
@click.option("--optimizer", help="which one, where the run has several; the first without")
@click.option("--force", is_flag=True, help="replace the file if it exists")
def csv_command(run: str, output: Path | None, optimizer: str | None, force: bool) -> None:
    """Write RUN as CSV: step, lr, norm before and after clipping, loss, skipped, skip_reason, scaler_scale.

    Exit status: 0 written, 2 not.
    """
    try:
        if output is None:
            write_csv(run, sys.stdout, optimizer)
        else:
            count = write_csv_file(run, output, optimizer, force)
            click.echo(f"{output}: {count:,} steps", err=True)
    except KeyError as error:
        refuse(error.args[0])
    except StoreError as error:
        refuse(str(error))


@main.command("replay")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--row", type=int, required=True, help="a row that was captured")
@click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, metavar="K", help="which rank's row")
@click.option("--entry", required=True, help="package.module:function, which returns (model, loss[, fresh])")
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="a file of earlier parameters, to feed the batch to as well; may be given again",
)
def replay_command(run: Path, row: int, rank: int, entry: str, checkpoints: tuple[Path, ...]) -> None:
    """Feed the captured batch of a row again, and write what came out beside the capture.

    ENTRY's model is put into the captured state; its loss is called as loss(model, batch), with the batch as it was
    given to t.observe_batch(); fresh() may give a batch that was never trained on.

    Exit status: 0 what was recorded came out again, 1 it did not, so nothing else is judged, 2 it cannot be replayed.
    """
    from recorder.replay import ReplayError, is_judged, replay  # torch takes seconds to import
    from recorder.replay.wording import lines

    try:
        result = replay(run, row, entry, rank, checkpoints)
    except (StoreError, ReplayError, OSError) as error:
        refuse(str(error))
    for line in lines(result):
        click.echo(line)
    sys.exit(0 if is_judged(result) else 1)


if __name__ == "__main__":
    sys.exit(run_command(main, sys.argv[1:]))
