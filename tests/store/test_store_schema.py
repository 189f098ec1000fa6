"""What any version of the recorder wrote opens in this one, with the values that it had then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.schema import COLUMNS, SCHEMA_VERSION, STEPS
from recorder.store import read_run
from recorder.store.documents import plain
from recorder.store.journal import MAGIC, TEXT, frame
from recorder.store.layout import Layout
from spikeview.cells import Kind
from spikeview.cli import main
from spikeview.importers import open_run

FIXTURES = Path(__file__).parents[1] / "fixtures"
VERSIONS = sorted(FIXTURES.glob("schema-*"))

every_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)


def test_this_version_of_the_schema_has_a_recorded_run() -> None:
    assert [path.name for path in VERSIONS] == [f"schema-{number + 1}" for number in range(SCHEMA_VERSION)], (
        "record one: python -m tests.fixtures.record"
    )


@every_version
def test_a_run_of_any_version_opens_with_its_values(version: Path) -> None:
    then: dict[str, Any] = json.loads((version / "expected.json").read_text())
    now = read_run(version / "run")
    columns = list(then["types"])
    assert plain(now.table.select(columns).to_pylist()) == then["steps"]
    assert plain(now.layers.select(list(then["layers"][0])).to_pylist()) == then["layers"]
    assert plain(now.events) == then["events"]
    assert now.manifest == then["manifest"]
    assert set(then["notes"]) <= set(now.notes)


@every_version
def test_columns_are_only_ever_added_and_keep_their_types(version: Path) -> None:
    then: dict[str, str] = json.loads((version / "expected.json").read_text())["types"]
    ours = [name for name in then if not name.startswith("user_")]
    assert {name: str(COLUMNS[name].arrow) for name in ours} == {name: then[name] for name in ours}
    run = open_run(version / "run")
    assert run.user_columns == [name for name in then if name.startswith("user_")]
    for column in STEPS:
        if column.name not in then:
            assert set(run.kind(column.name)) <= {Kind.NOT_RECORDED, Kind.NOT_APPLICABLE}


@every_version
def test_a_run_of_any_version_is_triaged(version: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", str(version / "run")]) in (0, 1)
    assert capsys.readouterr().err == ""


def test_a_run_of_a_later_version_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(VERSIONS[-1] / "run", tmp_path / "run"))
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"schema_version": SCHEMA_VERSION + 1}))
    assert main(["triage", str(run)]) == 2
    told = capsys.readouterr().err
    says = f"was written with schema version {SCHEMA_VERSION + 1}, and this version reads up to {SCHEMA_VERSION}"
    assert says in told
    assert told.endswith("; update spikeview\n")
    assert told.count("\n") == 1


def test_a_recorder_that_knew_fewer_columns_and_one_that_knows_more_are_read_together(tmp_path: Path) -> None:
    run = Path(shutil.copytree(VERSIONS[-1] / "run", tmp_path / "run"))
    folder = run / "steps/rank=0"
    part = pq.ParquetFile(folder / "part-000000.parquet").read()
    pq.write_table(part.drop_columns(["lr", "update_cosine"]), folder / "part-000000.parquet")
    further = pa.array([0.5] * pq.ParquetFile(folder / "part-000001.parquet").metadata.num_rows)
    later = pq.ParquetFile(folder / "part-000001.parquet").read().append_column("sharpness", further)
    pq.write_table(later, folder / "part-000001.parquet")
    # a journal of a recorder that has a number and a text which this version knows nothing of, and lacks lr
    columns = [(column.name, column.dtype) for column in STEPS if column.name != "lr"]
    layout = Layout([*columns, ("sharpness", "double"), ("phase_of_moon", "string")])
    block = np.zeros(1, layout.dtype)
    block["#valid"] = 1
    block["#defined"] = 1
    for name, value in {"row": 15, "segment": 2, "step": 12, "sharpness": 2.5, "phase_of_moon": 1}.items():
        block[name] = value
    text = TEXT.pack(layout.texts.index("phase_of_moon"), 1, 4) + b"full"
    head = json.dumps({"columns": layout.columns}).encode()
    (folder / "_journal-000002").write_bytes(MAGIC + frame(head) + frame(block.tobytes() + text))
    found = open_run(run)
    assert [name for name in found.user_columns if not name.startswith("user_")] == ["sharpness", "phase_of_moon"]
    assert found.values("sharpness")[-1] == 2.5
    assert found.values("sharpness")[-2] == 0.5
    assert found.text("phase_of_moon", len(found) - 1) == "full"
    assert set(found.kind("lr")[: part.num_rows]) == {Kind.NOT_RECORDED}
    assert found.kind("lr")[-1] == Kind.NOT_RECORDED
    assert found.kind("lr")[part.num_rows] == Kind.FINITE
