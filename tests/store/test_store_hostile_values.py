"""Columns of any type, values of any size and names of any kind, all the way to what a triage prints."""

from __future__ import annotations

import datetime as dt
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spikeview.importers import open_run
from tests.store.examine import PART, RECORDED, copied, read, triaged

NO_UTF_8 = pa.array([b"\xff\xfe"] * 16).view(pa.string())
WHOLE = pa.array([2**62] * 16)

# fmt: off
PLAIN: dict[str, pa.Array] = {  # numbers and texts, odd as they may be
    "text": pa.array(["x"] * 16), "numbers as text": pa.array(["1.5"] * 16), "no text": pa.array([""] * 16),
    "NUL": pa.array(["a\0b\x1b[31m\u202e"] * 16), "long text": pa.array(["x" * 300_000] * 16),
    "large text": pa.array(["y"] * 16, pa.large_string()), "text view": pa.array(["v"] * 16, pa.string_view()),
    "dictionary": pa.array(["z", None] * 8).dictionary_encode(), "null": pa.nulls(16), "bool": pa.array([True] * 16),
    "int8": pa.array([1] * 16, pa.int8()), "uint64": pa.array([2**64 - 1] * 16, pa.uint64()),
    "largest": pa.array([2**63 - 1] * 16), "smallest": pa.array([-(2**63)] * 16),
    "half": pa.array([1.5] * 16, pa.float16()),
    "double": pa.array([1.7e308, -1.7e308] * 8), "nan": pa.array([float("nan"), float("inf")] * 8),
    "fraction": pa.array([0.5] * 16), "decimal": pa.array([Decimal("1.5")] * 16),
    "decimal256": pa.array([Decimal(10) ** 40] * 16, pa.decimal256(60, 0)),
}
OTHER: dict[str, pa.Array] = {
    "list": pa.array([[1.0]] * 16), "nested": pa.array([[[[["a"]]]]] * 16), "struct": pa.array([{"a": 1}] * 16),
    "map": pa.array([[("a", 1)]] * 16, pa.map_(pa.string(), pa.int64())), "bytes": pa.array([b"\xff"] * 16),
    "fixed bytes": pa.array([b"ab"] * 16, pa.binary(2)), "date": pa.array([2**30] * 16, pa.int32()).view(pa.date32()),
    "time": pa.array([dt.time(1)] * 16), "timestamp": WHOLE.view(pa.timestamp("us")),
    "zone": WHOLE.view(pa.timestamp("ns", "No/Such")), "duration": WHOLE.view(pa.duration("s")),
}
# fmt: on


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return copied(tmp_path)


def written(run: Path, columns: dict[str, Any], **choices: Any) -> None:
    """The first part again, with these columns of 16 rows in place of those of their names, or after them."""
    table = pq.ParquetFile(RECORDED / PART).read()
    kept = {name: table[name] for name in table.column_names}
    pq.write_table(pa.table(kept | columns), run / PART, **choices)


@pytest.mark.parametrize("column", ["loss", "row", "optimizer", "executed"])
def test_a_column_of_ours_of_any_type_is_read_or_refused(run: Path, column: str) -> None:
    for name, values in {**PLAIN, **OTHER, "no UTF-8": NO_UTF_8}.items():
        written(run, {column: values})
        assert read(run) is None or (name in PLAIN and triaged(run)), name


def test_further_columns_are_offered_as_numbers_and_texts_and_the_others_are_told_of(run: Path) -> None:
    written(run, {**PLAIN, **OTHER})
    found = open_run(run)
    assert found.user_columns[4:] == list(PLAIN)
    kinds = {name: found.values(name).dtype.kind for name in PLAIN}
    assert {kinds[name] for name in ("text", "large text", "text view", "dictionary", "NUL")} == {"O"}
    assert {kinds[name] for name in ("half", "double", "nan", "fraction", "decimal", "decimal256")} == {"f"}
    assert found.values("decimal256")[0] == 1e40
    told = [note for note in found.notes if "neither numbers nor text" in note]
    assert told == ["columns that hold neither numbers nor text are left out: 'list', 'nested', 'struct' and 8 more"]
    assert triaged(run)
    written(run, {"odd": NO_UTF_8})
    assert read(run) is None


def test_columns_of_any_name_are_read(run: Path) -> None:
    nested = pa.array([{"b": 1}] * 16)
    names = ["", "#flags", "a.b", "a\0b", "\x1b[31m", "x" * 10_000, "user_", "../evil", "__import__('os')"]
    written(run, {"a": nested, **{name: pa.array([1.0] * 16) for name in names}})
    assert open_run(run).user_columns[4:] == names
    assert triaged(run)
    written(run, {f"user_{number}": pa.array([1.0] * 16) for number in range(3000)})
    assert triaged(run)


PLAIN_SIGHT = """
import pickle, sys
from pathlib import Path

seen = []
sys.addaudithook(lambda event, given: seen.append(event) if event.startswith("pickle.") else None)
pickle.loads = pickle.load = pickle.Unpickler = None  # whoever calls one of them fails

import numpy
numpy.load = numpy.lib.format.read_array = None
from spikeview.cli import main

assert "torch" not in sys.modules
status = main(["triage", "--json", sys.argv[1]])
main(["report", sys.argv[1], "-o", sys.argv[2]])
assert not Path(sys.argv[3]).exists() and not seen, seen
sys.exit(status)
"""


class Evil:
    """What unpickles as a file that is made."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.made), "w"))


def test_nothing_in_a_run_is_ever_unpickled(run: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    evil = pickle.dumps(Evil(made))
    # Arrow once kept Python's own extension types so, and read them back with pickle.
    said = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": evil}
    table = pq.ParquetFile(RECORDED / PART).read()
    table = table.append_column(pa.field("odd", pa.float64(), metadata=said), pa.array([1.0] * 16))
    table = table.append_column("bytes", pa.array([evil] * 16))
    pq.write_table(table.replace_schema_metadata({b"pandas": evil, b"pending": evil}), run / PART)
    (run / "events.jsonl").write_bytes(evil.replace(b"\n", b"") + b"\n")
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_SIGHT, run, tmp_path / "x.md", made], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_nothing_on_the_desk_side_could() -> None:
    root = Path(__file__).parents[2]
    sources = [*root.glob("spikeview/**/*.py"), *root.glob("recorder/store/*.py"), root / "recorder/schema.py"]
    imports = r"^\s*(import|from)\s+(c?pickle|dill|cloudpickle|joblib|marshal|shelve)\b"
    barred = re.compile(rf"{imports}|allow_pickle|torch\.load", re.MULTILINE)
    assert len(sources) > 100
    assert [str(path) for path in sources if barred.search(path.read_text())] == []
