"""Commands of the training side: `python -m recorder COMMAND`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recorder.amp_log import write_csv
from recorder.store import StoreError


@click.group()
def main() -> None:
    """Commands of the flight recorder."""


@main.command("csv")
@click.argument("run")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="a file; standard output without")
@click.option("--optimizer", help="which one, where the run has several; the first without")
def csv_command(run: str, output: Path | None, optimizer: str | None) -> None:
    """Write RUN as CSV: step, lr, norm before and after clipping, loss, skipped, skip_reason, scaler_scale."""
    try:
        if output is None:
            write_csv(run, sys.stdout, optimizer)
        else:
            with output.open("w", newline="", encoding="utf-8") as file:
                count = write_csv(run, file, optimizer)
            click.echo(f"{output}: {count:,} steps", err=True)
    except (StoreError, KeyError, OSError) as error:
        text = error.args[0] if isinstance(error, KeyError) else error
        click.echo(f"recorder: {text}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
