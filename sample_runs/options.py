"""The one option that every recording script has."""

import argparse
from pathlib import Path


def parser(script: str) -> argparse.ArgumentParser:
    """A parser with `--out`, which defaults to the script's own folder."""
    options = argparse.ArgumentParser()
    options.add_argument("--out", type=Path, default=Path(script).parent, help="the run directory to write")
    return options


def output(script: str) -> Path:
    """`--out` from the command line, for scripts without other options."""
    out: Path = parser(script).parse_args().out
    return out
