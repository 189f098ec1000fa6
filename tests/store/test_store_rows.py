"""What goes into a run comes out of it: every column, every kind of value, sealed or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorder.schema import LAYERS, STEPS, arrow_schema
from recorder.store import RunWriter, read_run

SAMPLE = {"int64": -(2**63), "int32": 2**31 - 1, "double": 0.1 + 0.2, "bool": True, "string": "naïve\x00 text"}

MakeRow = Callable[..., dict[str, Any]]
sealed = pytest.mark.parametrize("seal", [False, True], ids=["journal", "part"])


def finish(writer: RunWriter, seal: bool) -> None:
    if seal:
        writer.close()
    else:
        writer.flush()


@sealed
def test_every_column_comes_back_with_its_type_and_null_stays_null(tmp_path: Path, seal: bool) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    full = {column.name: SAMPLE[column.dtype] for column in STEPS} | {"row": 0}
    bare = {"row": 1, "optimizer": "main"}
    writer.append(full)
    writer.append(bare)
    finish(writer, seal)
    table = read_run(tmp_path / "run").table
    assert table.schema.equals(arrow_schema(STEPS))
    assert table.to_pylist() == [full, {column.name: bare.get(column.name) for column in STEPS}]


@sealed
def test_nan_infinities_and_null_are_four_things(tmp_path: Path, make_row: MakeRow, seal: bool) -> None:
    given = [math.nan, math.inf, -math.inf, None, -0.0, 5e-324]
    writer = RunWriter.create(tmp_path / "run", {})
    for number, loss in enumerate(given):
        writer.append(make_row(number, loss=loss), user={"own": loss})
    finish(writer, seal)
    table = read_run(tmp_path / "run").table
    for name in ("loss", "user_own"):
        assert [repr(value) for value in table[name].to_pylist()] == [repr(value) for value in given]


@sealed
def test_user_fields_may_come_late_and_go(tmp_path: Path, make_row: MakeRow, seal: bool) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    writer.append(make_row(0))
    writer.append(make_row(1), user={"tokens": 512, "domain": "code", "loss": 3.5, "good": np.bool_(True)})
    writer.append(make_row(2), user={"tokens": np.int64(7)})
    finish(writer, seal)
    table = read_run(tmp_path / "run").table
    assert table.column_names == [column.name for column in STEPS] + [
        "user_tokens",
        "user_domain",
        "user_loss",
        "user_good",
    ]
    assert table["user_tokens"].to_pylist() == [None, 512, 7]
    assert table["user_domain"].to_pylist() == [None, "code", None]
    assert table["user_loss"].to_pylist() == [None, 3.5, None]
    assert table["user_good"].to_pylist() == [None, True, None]
    assert table["loss"].to_pylist() == [2.0, 1.0, 2.0 / 3]


@pytest.mark.parametrize("roll_rows", [1, 2, 100], ids=["a part each", "parts of two", "one part"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2.5, None, 3], [1.0, 2.5, None, 3.0]),
        ([True, 2, None, False], [1, 2, None, 0]),
        ([True, 0.5, None, 3], [1.0, 0.5, None, 3.0]),
        ([1, "two", None, True], ["1", "two", None, "true"]),
        ([None, None, None, "x"], [None, None, None, "x"]),
    ],
)
def test_a_user_field_that_changes_its_type_takes_the_widest(
    tmp_path: Path, make_row: MakeRow, roll_rows: int, given: list[Any], expected: list[Any]
) -> None:
    writer = RunWriter.create(tmp_path / "run", {}, roll_rows=roll_rows)
    for number, value in enumerate(given):
        writer.append(make_row(number), user={"own": value})
    writer.close()
    values = read_run(tmp_path / "run").table["user_own"].to_pylist()
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


def test_text_that_utf8_cannot_hold_is_kept_as_an_escape(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {"config": "\udcff"})
    writer.append(make_row(0, batch_id="img\udcff.png"), user={"file": "a\udcff", "\udcff": 1})
    writer.append(make_row(1, batch_id="img\udcff.png"))
    writer.event("note", text="\udcff")
    writer.close()
    run = read_run(tmp_path / "run")
    assert run.table["batch_id"].to_pylist() == ["img\\udcff.png"] * 2
    assert run.table["user_file"].to_pylist() == ["a\\udcff", None]
    assert run.events[0]["text"] == run.manifest["config"] == "\\udcff"


@pytest.mark.parametrize(
    ("columns", "user", "error", "says"),
    [
        ({"lossy": 1.0}, None, KeyError, "lossy"),
        ({"loss": "1.0"}, None, TypeError, "loss: expected double"),
        ({"step": 1.5}, None, TypeError, "step: expected int64"),
        ({"micro_step": 2**31}, None, ValueError, "micro_step: 2147483648 does not fit int32"),
        ({"executed": "yes"}, None, TypeError, "executed: expected bool"),
        ({"batch_id": 7}, None, TypeError, "batch_id: expected text"),
        ({"batch_id": ["a"]}, None, TypeError, "batch_id: expected text"),
        ({"loss": 10**400}, None, ValueError, "loss"),
        ({}, {"own": [1]}, TypeError, "own: a user field is"),
        ({}, {"own": 2**63}, ValueError, "own: 9223372036854775808 does not fit"),
        ({}, {f"f{i}": 1 for i in range(1001)}, ValueError, "1000 different user fields"),
        ({"row": 0}, None, ValueError, "recorded already"),
        ({"row": -1}, None, ValueError, "cannot follow row 0"),
    ],
)
def test_a_row_that_is_refused_leaves_the_run_as_it_was(
    tmp_path: Path, make_row: MakeRow, columns: dict[str, Any], user: Any, error: type[Exception], says: str
) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    writer.append(make_row(0), user={"own": 1})
    with pytest.raises(error, match=says):
        writer.append(make_row(1, precision="new text") | columns, user)
    writer.append(make_row(1, precision="other"), user={"own": 2})
    before = read_run(tmp_path / "run").table
    writer.close()
    after = read_run(tmp_path / "run").table
    assert before.equals(after)
    assert after["row"].to_pylist() == [0, 1]
    assert after["precision"].to_pylist() == [None, "other"]
    assert after["user_own"].to_pylist() == [1, 2]


def test_numpy_scalars_are_taken(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    numbers = {"loss": np.float32(0.5), "executed": np.bool_(False), "loss_count": np.int32(4)}
    writer.append(make_row(0, **numbers))
    writer.close()
    row = read_run(tmp_path / "run").table.to_pylist()[0]
    assert (row["loss"], row["executed"], row["loss_count"]) == (0.5, False, 4)


def test_layers_keep_all_rows_of_one_transition_in_one_part(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", {}, roll_rows=2)
    rows = [
        {"row": number, "optimizer": "main", "name": name, "grad_norm": 1.0}
        for number in (8, 3)
        for name in ("a.weight", "a.bias", "b.weight")
    ]
    writer.append_layers(rows)
    writer.close()
    table = read_run(tmp_path / "run").layers
    assert table.schema.equals(arrow_schema(LAYERS))
    assert table.select(["row", "optimizer", "name", "grad_norm"]).to_pylist() == rows
    assert len(list((tmp_path / "run/layers/rank=0").glob("part-*.parquet"))) == 2


def test_only_the_columns_asked_for_are_read(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {}, roll_rows=2)
    for number in range(5):
        writer.append(make_row(number), user={"own": number})
    writer.flush()
    table = read_run(tmp_path / "run", columns=["user_own", "loss", "no_such"]).table
    assert table.column_names == ["loss", "user_own"]
    assert table["user_own"].to_pylist() == [0, 1, 2, 3, 4]
