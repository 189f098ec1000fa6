"""Small files that would fill any memory, and files of any size: refused, in a process that has little of it."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.store.documents import MOST_EVENTS
from recorder.store.journal import MAGIC, frame
from recorder.store.plausible import MOST_ROWS
from tests.store.examine import JOURNAL, PART, RECORDED, copied

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit can be set on a process's memory")

ROOT = Path(__file__).parents[2]
LIMIT = 3 * 2**28
TRIAGE = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT}, {LIMIT}))
from spikeview.cli import main
sys.exit(main(["triage", *sys.argv[1:]]))
"""


def triaged(*paths: Path) -> tuple[int, str, str]:
    """Status and both outputs of one triage in a process of its own that has no more memory than LIMIT."""
    done = subprocess.run(
        [sys.executable, "-c", TRIAGE, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def rows(count: int) -> dict[str, pa.Array]:
    """The columns that every row has."""
    zeros = pa.array(np.zeros(count, np.int64))
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["o"]))
    small = zeros.cast(pa.int32())
    return {"row": zeros, "segment": small, "step": zeros, "micro_step": small, "optimizer": texts, "time_ns": zeros}


def varint(number: int) -> bytes:
    """As a count stands in a part's footer, twice."""
    out, number = b"", 2 * number
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def one_text_in_every_row(part: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(65_536, np.int32)), pa.array(["x" * 5_000_000]))
    # without Arrow's own schema it is a text to a reader, and no dictionary
    pq.write_table(pa.table(rows(65_536) | {"batch_id": text}), part, compression="zstd", store_schema=False)


def a_dictionary_of_the_users(part: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(65_536, np.int32)), pa.array(["x" * 5_000_000]))
    pq.write_table(pa.table(rows(65_536) | {"user_prompt": text}), part, compression="zstd")


def texts_that_each_repeat_the_one_before(part: Path) -> None:
    table = pa.table(rows(100) | {"batch_id": ["y" * 1_000_000] * 100})
    choices = {"use_dictionary": False, "column_encoding": {"batch_id": "DELTA_BYTE_ARRAY"}, "data_page_size": 2**30}
    with pq.ParquetWriter(part, table.schema, compression="zstd", **choices) as file:
        for _ in range(9):
            file.write_table(table, row_group_size=10**6)


def saying(part: Path, said: int) -> None:
    count = 2**20
    pq.write_table(pa.table(rows(count)), part)
    data = part.read_bytes()
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    assert len(varint(count)) == len(varint(said))
    part.write_bytes(data[:footer] + data[footer:].replace(varint(count), varint(said)))


def more_rows_than_any_part(part: Path) -> None:
    saying(part, MOST_ROWS + 1)


def more_rows_than_there_are(part: Path) -> None:
    saying(part, 2**23)


def a_list_for_a_number(part: Path) -> None:
    numbers = pa.ListArray.from_arrays(pa.array([0, 1_000_000], pa.int32()), pa.array(np.zeros(1_000_000)))
    pq.write_table(pa.table(rows(1) | {"loss": numbers}), part, compression="zstd")


def a_footer_that_contradicts_itself(part: Path, column: str = "optimizer") -> None:
    pq.write_table(pa.table(rows(100)), part)
    data = part.read_bytes()
    # that the column may be null, as its histogram of nulls says too, is two bytes before its name
    may, must = (bytes([0x25, null, 0x18, len(column)]) + column.encode() for null in (2, 0))
    assert data.count(may) == 1
    part.write_bytes(data.replace(may, must))


def many_numbers(part: Path) -> None:
    numbers = {f"user_{number}": pa.array(np.zeros(2**21)) for number in range(36)}
    pq.write_table(pa.table(rows(2**21) | numbers), part, compression="zstd")


REFUSED = {
    one_text_in_every_row: "would take 327.7 GB of memory; move it out of the directory to read the rest",
    a_dictionary_of_the_users: "would take 327.7 GB of memory; move it out of the directory to read the rest",
    texts_that_each_repeat_the_one_before: "needs more memory than there is here (",
    more_rows_than_any_part: "is damaged: it is said to hold 16,777,217 rows",
    more_rows_than_there_are: "1,048,576 rows of 8,388,608 are there",
    a_list_for_a_number: "is damaged: the column loss is of another type (list<element: double>)",
    a_footer_that_contradicts_itself: "is damaged or truncated",
    many_numbers: "needs more memory than there is here (",
}


def test_small_parts_that_would_fill_any_memory_are_refused(tmp_path: Path) -> None:
    for make in REFUSED:
        make(copied(tmp_path / make.__name__) / PART)
        assert (tmp_path / make.__name__ / "run" / PART).stat().st_size < 2**20
    status, out, told = triaged(*(tmp_path / make.__name__ / "run" for make in REFUSED))
    assert (status, out) == (2, "")
    lines = told.splitlines()
    assert len(lines) == len(REFUSED)
    for line, (make, says) in zip(lines, REFUSED.items(), strict=True):
        assert f"{make.__name__}/run/{PART}: " in line
        assert says in line


def test_a_footer_that_contradicts_itself_ends_no_process_that_looks_for_a_step(tmp_path: Path) -> None:
    run = copied(tmp_path)
    a_footer_that_contradicts_itself(run / PART, "step")
    code = "import sys; from recorder.store.lookup import read_step; read_step(sys.argv[1], 3)"
    done = subprocess.run([sys.executable, "-c", code, run], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "StoreError: " in done.stderr
    assert "part-000000.parquet: is damaged" in done.stderr


def test_files_of_any_size_are_refused_or_left_out(tmp_path: Path) -> None:
    large = 40 * 2**30
    for name in ("events.jsonl", JOURNAL, "run.json"):
        os.truncate(copied(tmp_path / Path(name).name) / name, large)
    (copied(tmp_path / "lines") / "events.jsonl").write_bytes(b"\n" * (MOST_EVENTS + 9))
    head = json.dumps({"columns": [[f"c{number}", "double"] for number in range(10**5)]}).encode()
    (copied(tmp_path / "columns") / JOURNAL).write_bytes(MAGIC + frame(head))
    names = ["events.jsonl", "lines", Path(JOURNAL).name, "run.json", "columns"]
    status, out, told = triaged(*(tmp_path / name / "run" for name in names))
    assert status == 2
    notes, lines = " ".join(out.split()), told.splitlines()
    assert "note: events.jsonl holds 42,949,672,960 bytes, more than the events of any run" in notes
    assert f"note: events.jsonl holds more than {MOST_EVENTS:,} lines" in notes
    assert "_journal-000002: holds 42,949,672,960 bytes, more than any journal" in lines[0]
    assert "run.json: holds 42,949,672,960 bytes, more than any manifest" in lines[1]
    assert "_journal-000002: lacks the columns row, segment" in lines[2]
    assert len(lines) == 3


def test_lengths_and_numbers_of_records_that_a_journal_cannot_hold(tmp_path: Path) -> None:
    data = (RECORDED / JOURNAL).read_bytes()
    length = struct.pack("<II", 2**32 - 1, 0) + b"x" * 100
    spoilt = [data[: len(MAGIC)] + length, data + length, data + frame(b"x") * 1_000_000]
    for number, each in enumerate(spoilt):
        (copied(tmp_path / str(number)) / JOURNAL).write_bytes(each)
    status, out, told = triaged(*(tmp_path / str(number) / "run" for number in range(3)))
    assert (status, told) == (1, "")
    assert [int(count) for count in re.findall(r"^run  (\d+) rows", out, re.MULTILINE)] == [30, 38, 38]
    assert "_journal-000002 is damaged at byte" in out


def test_ten_thousand_files_and_a_thousand_ranks(tmp_path: Path) -> None:
    run = copied(tmp_path)
    for number in range(10_000):
        (run / f"steps/rank=0/junk{number}").touch()
    for number in range(1, 1000):
        (run / f"steps/rank={number}").mkdir()
    zeros = "\u0660" * 6
    for name in ("part-0000000.parquet", f"part-{zeros}.parquet", "part-000000.parquet ", "_journal-00003"):
        (run / "steps/rank=0" / name).write_bytes(b"no part")
    (run / "steps/rank=\u0661").mkdir()
    status, out, told = triaged(run)
    assert (status, told) == (1, "")
    assert "note: ranks 1 to 999 are not shown" in out
