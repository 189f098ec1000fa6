"""A run of unknown origin, taken through all there is up to what `spikeview triage` prints: read or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from recorder.store import StoredRun, StoreError, read_run
from spikeview.commands.card import card
from spikeview.importers import RunError, open_run
from spikeview.rules import triage as plain
from spikeview.rules.diagnosis import diagnose

RECORDED = Path(__file__).parents[1] / "fixtures" / "schema-1" / "run"
PART, JOURNAL = "steps/rank=0/part-000000.parquet", "steps/rank=0/_journal-000002"
LONGEST = 700


def copied(tmp_path: Path) -> Path:
    """A run of two parts, a journal, layers, events and a resume, to be spoilt."""
    return Path(shutil.copytree(RECORDED, tmp_path / "run", dirs_exist_ok=True))


def read(run: Path) -> StoredRun | None:
    """What the store reads of it, or None where it refuses."""
    try:
        found = read_run(run)
    except StoreError as error:
        assert_one_line(str(error))
        return None
    for note in found.notes:
        assert_one_line(note)
    return found


def triaged(run: Path) -> bool:
    """Whether it can be read; then everything that is said of it can be written down."""
    try:
        diagnosis = diagnose(open_run(run))
    except RunError as error:
        assert_one_line(str(error))
        return False
    assert json.dumps(plain.triage(diagnosis), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    assert "".join(head.plain + body.plain for head, body in card(diagnosis)).encode()
    return True


def assert_one_line(text: str) -> None:
    assert len(text.splitlines()) == 1
    assert len(text) < LONGEST
