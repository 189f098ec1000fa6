"""A real training that is killed at random moments, or told to end: every row whose transition had ended is there.

SPIKEVIEW_KILLS says how many times it is killed (10 without; `make kill-test` does it 100 times).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest
from click.testing import CliRunner

from recorder.__main__ import main
from recorder.store import read_run

KILLS = int(os.environ.get("SPIKEVIEW_KILLS", "10"))
OF_ONE_RUN = 4  # a run is killed and resumed so many times
REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and POSIX's signals")

# Imports torch once. Each line on its standard input makes a child that trains until a signal ends it. A child says
# which rows have ended; that it is dead is said when all that it said is in the pipe.
NURSERY = """
import os, sys
import torch
from recorder import FlightRecorder
from recorder.store import RunWriter

torch.set_num_threads(1)
torch.optim.Adam(torch.nn.Linear(1, 1).parameters())  # the first one imports for seconds
RunWriter.create.__func__.__kwdefaults__["roll_rows"] = 20  # so that many moments are those of a roll

def say(text):
    os.write(1, text.encode() + b"\\n")

def train(run):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    x = torch.randn(8, 4)
    settings = {"scheduler": scheduler, "max_norm": 1.0, "deep_every": 7, "resume": True}
    with FlightRecorder(run, model, optimizer, **settings) as recorder:
        row = recorder._logbook.row
        while True:
            with recorder.transition(batch_id=f"batch {row}") as t:
                optimizer.zero_grad()
                loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
                scheduler.step()
                t.record(own=row)
            if row % 10 == 0:
                recorder.note(f"row {row}")
            say(f"row {row}")
            row += 1

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            train(line.strip())
        except KeyboardInterrupt:
            os._exit(130)
    say(f"child {child}")
    os.waitpid(child, 0)
    say("dead")
"""


class Nursery:
    """The process whose children train."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def train(self, run: Path, ended_by: signal.Signals, moments: random.Random) -> int:
        """Let a child train and end it at a random moment: the number of the last row that had ended."""
        print(run, file=self._process.stdin, flush=True)
        child = int(self._next("child"))
        for _ in range(moments.randint(1, 60)):
            last = int(self._next("row"))
        moment = perf_counter() + moments.random() * 2e-3
        while perf_counter() < moment:
            pass
        os.kill(child, ended_by)
        for after, line in enumerate(iter(self._line, "dead"), start=1):
            last = int(line.removeprefix("row "))
            if after % 100 == 0:  # Python drops an interrupt that arrives in a destructor, or where C clears errors
                os.kill(child, ended_by)
        return last

    def _next(self, kind: str) -> str:
        line = self._line()
        assert line.startswith(f"{kind} "), line
        return line.removeprefix(f"{kind} ")

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the nursery is gone"
        return line.rstrip("\n")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", NURSERY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        yield Nursery(process)


def check(run: Path, last: int) -> int:
    """All rows up to `last` are there, once, in order and with their values; how many rows there are."""
    stored = read_run(run)
    rows = stored.table["row"].to_pylist()
    assert rows == list(range(len(rows)))
    assert last + 1 <= len(rows) <= last + 2  # the one in progress may be there too
    ended = stored.table.slice(0, last + 1)
    assert ended["batch_id"].to_pylist() == [f"batch {row}" for row in range(last + 1)]
    assert ended["user_own"].to_pylist() == list(range(last + 1))
    assert ended["executed_n"].to_pylist() == list(range(1, last + 2))
    for name in ("loss", "grad_norm", "clip_coef", "update_ratio", "lr"):
        assert ended[name].null_count == 0, name
    notes = [event["text"] for event in stored.events if event["kind"] == "note"]
    assert set(notes) >= {f"row {row}" for row in range(0, last + 1, 10)}
    return len(rows)


def ask(command: str, run: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [command, str(run)])
    return result.exit_code, result.output


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_every_row_whose_transition_had_ended_is_there(
    tmp_path: Path, nursery: Nursery, ended_by: signal.Signals
) -> None:
    moments = random.Random(7)
    times = KILLS if ended_by == signal.SIGKILL else 2
    for kill in range(times):
        run = tmp_path / f"{kill // OF_ONE_RUN}"
        last = nursery.train(run, ended_by, moments)
        count = check(run, last)
        assert set(read_run(run).table["segment"].to_pylist()) == set(range(kill % OF_ONE_RUN + 1))
        if kill % OF_ONE_RUN == OF_ONE_RUN - 1 or kill == times - 1:
            before = read_run(run).table
            assert ask("repair", run)[0] in (0, 1), ask("repair", run)
            assert ask("verify", run)[0] == 0, ask("verify", run)
            assert read_run(run).table.equals(before)
            assert check(run, last) == count


def test_ctrl_c_at_any_moment_seals_the_run_and_loses_nothing(tmp_path: Path, nursery: Nursery) -> None:
    moments = random.Random(11)
    for interrupt in range(KILLS):
        run = tmp_path / f"{interrupt}"
        check(run, nursery.train(run, signal.SIGINT, moments))
        assert read_run(run).manifest["closed"] is True
        assert not list(run.rglob("_*"))
        assert ask("verify", run)[0] == 0, ask("verify", run)
