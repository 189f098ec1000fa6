"""How a command of the recorder ends: its exit status, and one line where it was refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

REFUSED = 2
OUR_FAULT = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


def refuse(line: str) -> NoReturn:
    """End the command with one line on standard error."""
    click.echo(f"recorder: {' '.join(line.split())}", err=True)
    sys.exit(REFUSED)


def run(command: click.Command, arguments: Sequence[str]) -> int:
    """The exit status of a command line. 1 is a command's own answer, so nothing that goes wrong ends with it."""
    try:
        # Not click's own main: it ends a broken pipe with status 1.
        with command.make_context("recorder", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would fail once more at exit
        return BROKEN_PIPE
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return REFUSED
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "recorder"
        click.echo(f"recorder: {error.format_message().rstrip('.')}; see `python -m {path} --help`", err=True)
        return REFUSED
    except Exception as error:  # noqa: BLE001  # the status tells a caller that the fault is ours, not the run's
        what = " ".join(str(error).split()) or "no message"
        click.echo(f"recorder: a fault of its own: {type(error).__name__}: {what}; please report it", err=True)
        return OUR_FAULT
    return 0
