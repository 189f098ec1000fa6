"""Whatever is done to the bytes of a run: what can be read is read, and the rest is refused or told of."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recorder.store.journal import FRAME, MAGIC, frame
from tests.store.examine import JOURNAL, PART, RECORDED, copied, read, triaged

some = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,  # the same everywhere; more are tried with another seed where one looks for faults
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return copied(tmp_path)


def boundaries(data: bytes) -> Iterator[int]:
    """Where the parts of a journal begin: frames, their heads and checksums, blocks, texts and fields."""
    yield from range(len(MAGIC) + 1)
    at = len(MAGIC)
    while at < len(data):
        length, _ = FRAME.unpack_from(data, at)
        begin, end = at + FRAME.size, at + FRAME.size + length
        yield from (at, at + 1, at + 4, begin - 1, begin, begin + 4, begin + 5, begin + 6, begin + length // 2)
        yield from (end - 9, end - 1, end)
        at = end


def test_a_journal_cut_anywhere_gives_the_rows_before_the_cut(run: Path) -> None:
    whole = read(run)
    assert whole is not None
    rows, sealed = whole.table.to_pylist(), len(whole.table) - 8
    data = (run / JOURNAL).read_bytes()
    counts = []
    for cut in sorted(set(boundaries(data))):
        (run / JOURNAL).write_bytes(data[:cut])
        found = read(run)
        assert found is not None
        # as texts NaN is like NaN
        assert repr(found.table.slice(sealed).to_pylist()) == repr(rows[sealed : len(found.table)])
        counts.append(len(found.table))
    assert counts == sorted(counts)
    assert set(counts) == set(range(sealed, len(whole.table) + 1))


def test_events_cut_anywhere_are_those_before_the_cut(run: Path) -> None:
    data = (run / "events.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    for cut in range(0, len(data), 19):
        (run / "events.jsonl").write_bytes(data[:cut])
        found = read(run)
        assert found is not None
        assert len(found.events) == data[:cut].count(b"\n")
        assert [event["kind"] for event in found.events] == [json.loads(line)["kind"] for line in lines][
            : len(found.events)
        ]


def test_a_manifest_or_a_part_cut_anywhere_is_refused(run: Path) -> None:
    metadata = pq.ParquetFile(run / PART).metadata
    chunks = [metadata.row_group(0).column(place) for place in range(metadata.num_columns)]
    size = (run / PART).stat().st_size
    pages = {offset for chunk in chunks for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset}
    footer = size - 8 - metadata.serialized_size
    cuts = {0, 3, 4, 5, footer - 1, footer, footer + 1, size - 9, size - 8, size - 5, size - 4, size - 1} | pages
    for name, places in (("run.json", range(0, (run / "run.json").stat().st_size - 2, 29)), (PART, sorted(cuts))):
        data = (run / name).read_bytes()
        for cut in places:
            (run / name).write_bytes(data[:cut])
            assert read(run) is None, (name, cut)
        (run / name).write_bytes(data)


FILES = [
    "run.json",
    "events.jsonl",
    JOURNAL,
    PART,
    "layers/rank=0/part-000001.parquet",
    "layers/rank=0/_journal-000002",
]
# A place as a share of the file, and what comes there.
changes = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=8), st.integers(0, 8)), min_size=1, max_size=4
)


def changed(data: bytes, edits: list[tuple[float, bytes, int]]) -> bytes:
    for share, put, gone in edits:
        at = int(share * len(data))
        data = data[:at] + put + data[at + gone :]
    return data


@some
@given(name=st.sampled_from(FILES), edits=changes)
def test_any_bytes_of_any_file(run: Path, name: str, edits: list[tuple[float, bytes, int]]) -> None:
    data = (run / name).read_bytes()
    (run / name).write_bytes(changed(data, edits))
    try:
        triaged(run)
    finally:
        (run / name).write_bytes(data)


PACKING: list[dict[str, Any]] = [
    {"compression": "none", "use_dictionary": False},
    {"compression": "snappy", "use_dictionary": True, "data_page_version": "2.0"},
]


@some
@given(packing=st.sampled_from(PACKING), edits=changes)
def test_any_bytes_of_a_part_without_checksums(
    run: Path, packing: dict[str, Any], edits: list[tuple[float, bytes, int]]
) -> None:
    pq.write_table(pq.ParquetFile(RECORDED / PART).read(), run / PART, **packing)
    (run / PART).write_bytes(changed((run / PART).read_bytes(), edits))
    triaged(run)


@some
@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, 9),
            st.floats(0, 1),
            st.sampled_from(
                [b"", b"\xff" * 8, b"\x7f", bytes(8), struct.pack("<d", 1.7e308), struct.pack("<q", -(2**63))]
            ),
            st.sampled_from(
                [b"", b"{}", b'{"a":1e999}', b'{"\\ud800":"\\ud800"}', b'{"a":[]}', b"9" * 5000, b"[" * 5000]
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_record_of_a_journal_whose_checksum_holds(run: Path, edits: list[tuple[int, float, bytes, bytes]]) -> None:
    data = (run / JOURNAL).read_bytes()
    payloads, at = [], len(MAGIC)
    while at < len(data):
        length, _ = FRAME.unpack_from(data, at)
        payloads.append(data[at + FRAME.size : at + FRAME.size + length])
        at += FRAME.size + length
    for number, share, put, after in edits:
        payload = payloads[number % len(payloads)]
        place = int(share * len(payload))
        payloads[number % len(payloads)] = payload[:place] + put + payload[place + len(put) :] + after
    (run / JOURNAL).write_bytes(MAGIC + b"".join(map(frame, payloads)))
    try:
        triaged(run)
    finally:
        (run / JOURNAL).write_bytes(data)


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**64,
    10**400,
    1.7e308,
    5e-324,
    float("nan"),
    float("-inf"),
]
VALUES += [
    "",
    "x" * 100_000,
    "\ud800",
    "\x00\x1b[31m\u202e",
    "nan",
    "12",
    [],
    {},
    [[]],
    {"": None},
    [None] * 50,
    [{"lr": "x"}],
]
KINDS = ["checkpoint", "validation", "note", "trigger", "resume", "exception", "recorder_fault", "capture", "odd"]
FIELDS = [
    "row",
    "step",
    "text",
    "name",
    "loss",
    "restored",
    "from_checkpoint",
    "time_ns",
    "trigger",
    "optimizer",
    "reason",
]
event = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS)}, optional={name: st.sampled_from(VALUES) for name in FIELDS}
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a document where another value may stand: what holds it, and its key there."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@some
@given(
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(VALUES)), max_size=3),
    events=st.lists(event, max_size=3),
    more=st.dictionaries(
        st.sampled_from(["deep", "config", "scaler", "world_size", "closed", "odd"]), st.sampled_from(VALUES)
    ),
)
def test_any_value_in_the_manifest_and_the_events(
    run: Path, edits: list[tuple[int, Any]], events: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    manifest = json.loads((RECORDED / "run.json").read_text())
    said = [json.loads(line) for line in (RECORDED / "events.jsonl").read_text().splitlines()]
    for number, value in edits:
        there = list(places([manifest, said]))[2:]
        holder, key = there[number % len(there)]
        holder[key] = value
    (run / "run.json").write_text(json.dumps({**manifest, **more}))
    (run / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [*said, *events]))
    triaged(run)
