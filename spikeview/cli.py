"""The command line: `spikeview RUN` and its sub-commands."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import TextIO

import click

from spikeview.commands.batches import batches
from spikeview.commands.bundle import bundle
from spikeview.commands.compare import compare
from spikeview.commands.import_run import import_run
from spikeview.commands.report import report
from spikeview.commands.status import BROKEN_PIPE, INTERRUPTED, OUR_FAULT, UNREADABLE, CommandError
from spikeview.commands.triage import triage
from spikeview.commands.view import view
from spikeview.format import printable
from spikeview.importers.elsewhere import is_elsewhere
from spikeview.importers.errors import RunError

COMMANDS: tuple[click.Command, ...] = (view, triage, batches, compare, report, bundle, import_run)


class RunOrCommand(click.Group):
    """A group whose first argument may be a run: what is no sub-command is opened in the window."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            self._refuse_misspelt(args[0])
            return view.name, view, args
        return super().resolve_command(ctx, args)

    def _refuse_misspelt(self, name: str) -> None:
        """Raise UsageError for what is no run here, and nearly a command."""
        from difflib import get_close_matches

        near = get_close_matches(name, self.commands, 1)
        if near and not is_elsewhere(name) and not os.path.lexists(name):
            raise click.UsageError(f"{printable(name)} is no run here and no command; the nearest one is {near[0]}")


@click.group(
    cls=RunOrCommand,
    commands={str(command.name): command for command in COMMANDS},
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="RUN | COMMAND ...",
)
@click.option("--debug", is_flag=True, help="Show the traceback of a fault of spikeview's own.")
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def spikeview(context: click.Context, debug: bool, version: bool) -> int | None:
    """Find the transition before the first bad observation of a training run.

    `spikeview RUN` opens the window on a run directory. A run that is named like a command is given as ./triage.
    """
    if version:
        from importlib import metadata  # with all of email, which no other start needs

        click.echo(f"spikeview {metadata.version('spikeview')}")
        context.exit(0)
    if context.invoked_subcommand is None:
        return int(context.invoke(view, run=None))
    return None


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and give its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        # Not click's own main: it ends a broken pipe with status 1, which here means that something was found.
        with spikeview.make_context("spikeview", list(arguments)) as context:
            status = spikeview.invoke(context)
        if sys.stdout is not None:  # it was closed before we began
            sys.stdout.flush()
        return int(status or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _give_up(sys.stdout)
        return BROKEN_PIPE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "spikeview"
        _tell(f"{error.format_message().rstrip('.')}; see `{command} --help`")
        return UNREADABLE
    except (RunError, CommandError) as error:
        _tell(str(error))
        return UNREADABLE
    except MemoryError:
        _tell("a run needs more memory than there is here; read it on a larger machine")
        return UNREADABLE
    except OSError as error:
        if error.filename is not None:
            return _own_fault(error, arguments)
        _give_up(sys.stdout)  # a file that is opened has a name; what is written to, nameless, is the output
        _tell(f"the output cannot be written ({error.strerror}); send it elsewhere")
        return UNREADABLE
    except Exception as error:  # noqa: BLE001 - the exit status tells a caller that the fault is ours, not the run's
        return _own_fault(error, arguments)


def _own_fault(error: Exception, arguments: list[str]) -> int:
    if "--debug" in arguments:
        traceback.print_exc()
    else:
        what = " ".join(str(error).split()) or "no message"
        again = "run again as `spikeview --debug ...` for the traceback, and please report it"
        _tell(f"a fault of its own: {type(error).__name__}: {what}; {again}")
    return OUR_FAULT


def _tell(line: str) -> None:
    """One line on stderr, whatever is in the text."""
    try:
        click.echo(f"spikeview: {printable(' '.join(line.split()))}", err=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    """Nobody takes what is written to a stream, and Python would fail once more when it flushes it at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
