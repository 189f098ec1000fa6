"""What a report tells beside the findings: the order of events, where to go back to, and what to feed again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recorder.schema import LAYERS, arrow_schema
from recorder.store.rewinds import Rewind
from spikeview.importers import open_run
from spikeview.importers.captures import captures_of
from spikeview.report.content import content
from spikeview.report.export import render
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, diagnose
from tests.report.conftest import make_run

SAMPLES = Path(__file__).parents[2] / "sample_runs"


def with_run(diagnosis: Diagnosis, **changes: Any) -> Diagnosis:
    """The same diagnosis of a run that differs in other things than its rows."""
    run = replace(diagnosis.run, **changes, _cache={})
    incidents = [replace(one, view=replace(one.view, run=run)) for one in diagnosis.incidents]
    return replace(diagnosis, run=run, incidents=tuple(incidents))


def told(diagnosis: Diagnosis, incident: int = 1) -> dict[str, Any]:
    return dict(content(diagnosis, incident)["incidents"][0])


def moments(diagnosis: Diagnosis, incident: int = 1) -> list[tuple[int, int, str]]:
    return [(each["row"], each["ahead"], each["text"]) for each in told(diagnosis, incident)["timeline"]["moments"]]


def test_the_timeline_has_signals_events_and_the_scale_in_order_of_rows(skips: Diagnosis) -> None:
    assert moments(skips) == [
        (1, 1, "last healthy row"),
        (1, 1, "the transition before the first bad observation"),
        (2, 0, "trigger: trigger nonfinite"),
        (2, 0, "pre-clip norm not finite: Inf, 4 rows before the loss"),
        (2, 0, "the step was attempted and did not execute"),
        (3, -1, "note: look here"),
        (3, -1, "loss scale 65536 to 32768"),
        (3, -1, "last row of the incident"),
        (4, -2, "loss scale 32768 to 16384"),
    ]


def test_the_timeline_says_where_a_signal_was_worst_and_where_the_rate_jumped() -> None:
    rows = 300
    loss = [2.0 + 0.01 * (at % 7) for at in range(rows)]
    loss[200:204] = [60.0, 900.0, 80.0, 70.0]
    run = make_run(
        {
            "loss": loss,
            "attempted": [True] * rows,
            "executed": [True] * rows,
            "lr": [1e-3] * 198 + [3e-2] * (rows - 198),
        }
    )
    texts = {row: text for row, _, text in moments(diagnose(run)) if "loss" in text or "rate" in text}
    assert texts[198] == "learning rate 0.001000 to 0.03000, 2 rows before the loss"
    assert texts[200].startswith("loss left its baseline: 60 (+")
    assert texts[201] == "loss at its worst: 900"


def test_a_timeline_of_many_events_keeps_its_signals(explosion: Diagnosis) -> None:
    events = tuple({"kind": "note", "row": at % 12, "text": f"note {at}"} for at in range(100))
    timeline = told(with_run(explosion, events=events))["timeline"]
    texts = [each["text"] for each in timeline["moments"]]
    assert "loss left its baseline: 3.785e+08 (+9.1e+10 MADs)" in texts
    assert (len(texts), timeline["left_out"]) == (40, 100 + 7 - 40)


def checkpoints(*rows: int) -> Sequence[dict[str, Any]]:
    return [{"kind": "checkpoint", "row": row, "name": f"step-{row}"} for row in rows]


def test_the_last_checkpoint_before_the_accused_transition_is_good(explosion: Diagnosis) -> None:
    checkpoint = told(with_run(explosion, events=checkpoints(2, 4, 5, 6, 9)))["checkpoint"]
    assert (checkpoint["name"], checkpoint["row"]) == ("step-4", 4)
    assert checkpoint["text"] == (
        "step-4, saved after row 4: 1 row before the accused transition, and outside every incident."
    )


def test_a_checkpoint_within_another_incident_is_not_good(skips: Diagnosis) -> None:
    checkpoint = told(with_run(skips, events=checkpoints(0, 2, 3)), incident=2)["checkpoint"]
    assert checkpoint["name"] == "step-0"
    checkpoint = told(with_run(skips, events=checkpoints(2, 3)), incident=2)["checkpoint"]
    assert checkpoint["name"] is None
    assert checkpoint["text"] == (
        "None is known to be good: 2 checkpoints from before the accused transition, row 5, "
        "lie within incidents or were left behind."
    )


def test_a_checkpoint_on_rows_that_were_left_behind_is_not_good(explosion: Diagnosis) -> None:
    went_back = [Rewind(at=5, step=3, rows=((3, 4),), steps=(3, 4))]
    checkpoint = told(with_run(explosion, events=checkpoints(1, 4), rewinds=went_back))["checkpoint"]
    assert checkpoint["name"] == "step-1"


def test_no_checkpoint_is_said(explosion: Diagnosis) -> None:
    assert told(explosion)["checkpoint"]["text"] == "No checkpoint was recorded before the accused transition, row 5."


def layers(rows: Sequence[tuple[int, str, float, int | None]]) -> pa.Table:
    columns = {"row": 0, "name": 1, "grad_norm": 2, "grad_nonfinite": 3}
    table = {name: [each[at] for each in rows] for name, at in columns.items()}
    return pa.Table.from_pylist(
        [{**{name: table[name][at] for name in table}, "optimizer": "optimizer"} for at in range(len(rows))],
        arrow_schema(LAYERS),
    )


def test_the_layers_that_carried_the_norm_stand_beside_their_share_before(explosion: Diagnosis) -> None:
    rows = [(4, "a", 3.0, 0), (4, "b", 4.0, 0), (6, "a", 3.9e9, 0), (6, "b", 1.3e9, 0), (7, "a", 1.0, 0)]
    found = told(with_run(explosion, layers=layers(rows)))["layers"]
    assert found["text"] == "Parameter a carried 90 % of the squared norm at row 6; at row 4 it was 36 %."
    assert [(each["name"], round(each["share"], 2), round(each["share_before"], 2)) for each in found["top"]] == [
        ("a", 0.9, 0.36),
        ("b", 0.1, 0.64),
    ]


def test_nonfinite_gradients_come_first_and_have_no_share(explosion: Diagnosis) -> None:
    rows = [(6, "a", 1.7e308, 0), (6, "b", float("nan"), 3), (6, "c", 1.7e308, 0)]
    found = told(with_run(explosion, layers=layers(rows)))["layers"]
    assert found["text"] == (
        "At row 6 the gradient of parameter b was not finite. Parameter a carried 50 % of the squared norm at row 6."
    )
    assert [(each["name"], each["share"]) for each in found["top"]] == [("b", None), ("a", 0.5), ("c", 0.5)]


def test_layers_that_were_not_recorded_are_said_to_be(explosion: Diagnosis) -> None:
    assert told(explosion)["layers"]["text"] == "The norms of single layers were not recorded here."


def test_the_batches_to_feed_again_say_where_else_they_were_fed(explosion: Diagnosis) -> None:
    run = explosion.run
    batches = pa.array(["3", "1", "2", "6", "4", "5", "6", "7", "8", "9", "10", "11"])
    table = run.table.set_column(run.table.column_names.index("batch_id"), "batch_id", batches)
    found = told(with_run(explosion, table=table, events=checkpoints(2)))["feed_again"]
    assert [(each["batch"], each["row"], each["role"]) for each in found["batches"]] == [
        ("5", 5, "transition"),
        ("6", 6, "first bad row"),
    ]
    assert found["batches"][1]["also_at"] == [{"row": 3, "loss": "0.04890"}]
    assert found["how"][0] == (
        "Restore step-2 with optimizer, scheduler, scaler and random state, then feed the 3 rows up to row 5 in "
        "their order."
    )
    assert found["how"][1].startswith("Evaluate batch 6 without stepping")


def test_batches_without_an_id_are_not_invented(explosion: Diagnosis) -> None:
    table = explosion.run.table.drop_columns(["batch_id"])
    found = told(with_run(explosion, table=table))["feed_again"]
    assert {each["batch"] for each in found["batches"]} == {None}
    assert found["how"][0].startswith("Batch ids were not recorded")


def with_replay(diagnosis: Diagnosis, folder: Path, row: int, text: str) -> Diagnosis:
    place = folder / "captures" / f"row-{row:06d}"
    place.mkdir(parents=True)
    (place / "replay.json").write_text(text)
    return with_run(diagnosis, path=str(folder), captures=captures_of(folder, 0))


def test_replays_and_captures_of_the_incident_are_told(explosion: Diagnosis, tmp_path: Path) -> None:
    said = {"comparisons": [{"hypothesis": "numerical range", "outcome": "fp32 finite", "verdict": "supported"}]}
    found = told(with_replay(explosion, tmp_path, 6, json.dumps(said)))
    assert found["replays"] == [{"row": 6, **said, "problem": None}]
    assert [each["captured"] for each in found["feed_again"]["batches"]] == [False, True]
    assert found["captured"] == [
        {
            "row": 6,
            "command": f"python -m recorder replay {tmp_path} --row 6 --entry package.module:build",
            "summary": "numerical range: supported",
        }
    ]


def test_a_captured_row_leads_with_how_to_feed_it_again(explosion: Diagnosis, tmp_path: Path) -> None:
    (tmp_path / "captures" / "row-000006").mkdir(parents=True)
    diagnosis = with_run(explosion, path=str(tmp_path), captures=captures_of(tmp_path, 0))
    command = f"python -m recorder replay {tmp_path} --row 6 --entry package.module:build"
    assert command in told(diagnosis)["feed_again"]["how"][0]
    for face in (".html", ".md"):
        text = render(diagnosis, None, Path(f"x{face}"))
        assert text.index(command) < text.index("What is known, and where to look")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "replay.json is not JSON"), ("[1]", "replay.json holds no comparisons"), ("[" * 100_000, "is not JSON")],
)
def test_a_replay_that_is_none_is_said_to_be(explosion: Diagnosis, tmp_path: Path, text: str, problem: str) -> None:
    [replay] = told(with_replay(explosion, tmp_path, 6, text))["replays"]
    assert problem in replay["problem"]
    assert replay["comparisons"] == []


def test_replays_of_other_rows_belong_to_other_incidents(explosion: Diagnosis, tmp_path: Path) -> None:
    assert told(with_replay(explosion, tmp_path, 4, "{}"))["replays"] == []


def test_a_log_with_gaps_says_in_which_steps_it_began(explosion: Diagnosis) -> None:
    table = explosion.run.table.set_column(
        explosion.run.table.column_names.index("step"), "step", pa.array(range(0, 120, 10))
    )
    said = content(with_run(explosion, table=table, manifest={"log": {"format": "csv", "columns": {}}}))
    assert said["incidents"][0]["first_bad"]["range"] == [51, 60]
    assert said["headline"].startswith("Loss left its baseline in steps 51 to 60 (3.785e+08")


def test_the_neighbours_are_as_many_as_asked_for(explosion: Diagnosis) -> None:
    [few] = content(explosion, rows=1)["incidents"]
    assert [row["row"] for row in few["neighbours"]] == [4, 5, 6, 7]


def test_what_was_recorded_of_a_sample_run_is_told() -> None:
    found = told(diagnose(open_run(SAMPLES / "update_against_gradient")))
    assert found["layers"]["text"] == (
        "Parameter 2.weight carried 41 % of the squared norm at row 122; at row 121 it was 58 %."
    )
    assert (123, -1, "note: loss on batch 123 before and after its own step: 0.28032, 0.29854") in [
        (each["row"], each["ahead"], each["text"]) for each in found["timeline"]["moments"]
    ]


def test_the_checklist_has_its_evidence_in_the_report(skips: Diagnosis) -> None:
    said = content(skips)["checklist"]
    assert [len(said[section]) for section in ("mistake", "launch")] == [10, 13]
    assert all(item["evidence"] and item["answer"] for items in said.values() for item in items)


def test_several_incidents_are_told_and_the_title_names_them(skips: Diagnosis) -> None:
    said = content(skips, [2, 1, 2])
    assert [one["number"] for one in said["incidents"]] == [1, 2]
    assert said["title"] == "Incidents 1 and 2 of 2 in amp"


def test_of_very_many_incidents_the_most_severe_are_told_and_the_others_listed(explosion: Diagnosis) -> None:
    [one] = explosion.incidents
    mild = replace(one, incident=replace(one.incident, severity="warning"))
    many: tuple[Diagnosed, ...] = (mild,) * 300 + (one,) * 2
    said = content(replace(explosion, incidents=many), most=3)
    assert [each["number"] for each in said["incidents"]] == [1, 301, 302]
    assert [each["number"] for each in said["others"]] == list(range(2, 202))
    assert said["others_left_out"] == 302 - 3 - 200
    assert said["headline"].startswith("302 incidents in 12 rows")
