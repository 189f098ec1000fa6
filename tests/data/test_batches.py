"""`spikeview batches`: from a sample to the rows, and the incidents, that it was in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402  # after the skip

from recorder import FlightRecorder  # noqa: E402  # after the skip
from recorder.data import batch, identified  # noqa: E402  # after the skip
from recorder.store import read_run  # noqa: E402  # after the skip
from spikeview.cli import main  # noqa: E402  # after the skip

SAMPLES, BATCH, EPOCHS, POISONED = 1600, 80, 6, 777
Captured = pytest.CaptureFixture[str]


def data() -> TensorDataset:
    x = torch.randn(SAMPLES, 8, generator=torch.Generator().manual_seed(1))
    y = x.sum(1, keepdim=True) + 0.3 * torch.randn(SAMPLES, 1, generator=torch.Generator().manual_seed(2))
    y[POISONED] *= 1e5
    return TensorDataset(x, y)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks that train on shuffled batches of their own, with one label that is far out."""
    path = tmp_path_factory.mktemp("trained") / "run"
    for rank in range(2):
        torch.manual_seed(rank)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = identified(DataLoader(data(), batch_size=BATCH, shuffle=True))
        with FlightRecorder(path, model, optimizer, max_norm=1.0, deep_every=0, rank=rank) as recorder:
            for ids, (x, y) in (each for _ in range(EPOCHS) for each in loader):
                with recorder.transition(batch_id=ids) as t:
                    optimizer.zero_grad()
                    loss = torch.nn.functional.mse_loss(model(x), y)
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_()
                    optimizer.step()
    return path


def asked(path: Path, capsys: Captured, *options: str) -> dict[str, Any]:
    assert main(["batches", str(path), *options, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return told


def test_the_rows_of_a_sample_and_the_incidents_they_begin(trained: Path, capsys: Captured) -> None:
    told = asked(trained, capsys, "--sample", str(POISONED))
    assert (told["sample"], told["ranks"], told["rows"]) == (POISONED, [0, 1], 2 * EPOCHS * SAMPLES // BATCH)
    held = told["batches"]
    assert len(held) == 2 * EPOCHS, "once an epoch on each rank"
    assert [each["rank"] for each in held].count(1) == EPOCHS
    for each in held:
        row = read_run(trained, rank=each["rank"]).table.slice(each["row"], 1).to_pylist()[0]
        again, _ = batch(data(), row["batch_id"])
        assert torch.equal(again[each["place"]], data()[POISONED][0])
        assert (each["step"], each["batch_id"]) == (row["step"], row["batch_id"])
        assert each["loss"] == row["loss"] > 1e6
    assert any(each["incident"] and each["begins_incident"] for each in held)

    lone = asked(trained, capsys, "--sample", "3", "--rank", "1")["batches"]
    assert len(lone) == EPOCHS and {each["rank"] for each in lone} == {1}
    assert asked(trained, capsys, "--sample", str(SAMPLES))["batches"] == []


def test_the_table_names_place_and_incident(trained: Path, capsys: Captured) -> None:
    assert main(["batches", str(trained), "--sample", str(POISONED)]) == 0
    head, columns, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith(f"sample {POISONED}: in 12 rows of 240, ")
    assert columns.split() == ["rank", "row", "step", "loss", "executed", "place", "incident"]
    assert len(lines) == 12 and any("begins 1" in line for line in lines)
    assert all("e+0" in line for line in lines), "the losses"
    assert max(map(len, lines)) <= 80


def test_the_sample_that_the_bad_batches_share(trained: Path, capsys: Captured) -> None:
    told = asked(trained, capsys, "--shared")
    assert told["incidents"] == len(told["shared"][0]["incidents"]) > 2
    assert told["shared"][0]["sample"] == POISONED
    assert all(len(each["incidents"]) < told["incidents"] for each in told["shared"][1:])
    assert main(["batches", str(trained), "--shared"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head == f"{told['incidents']} incidents began with a batch whose samples are known"
    assert first.split() == ["*", "in", f"{told['incidents']}", "of", f"{told['incidents']}:", f"{POISONED}"]


def test_whatever_is_given_as_a_sample_is_searched_for(tmp_path: Path, capsys: Captured) -> None:
    model = torch.nn.Linear(2, 1)
    path = tmp_path / "odd"
    ids = [[-1, 2**64], ["a\nb", "\udcff"], "[0-9999999999999999999]", "[1 of 9999999999999999999-5: AA==]"]
    with FlightRecorder(path, model, torch.optim.SGD(model.parameters(), lr=0.1)) as recorder:
        for each in [*ids, '[[{"a":1}]]']:
            with recorder.transition(batch_id=each):
                pass
    capsys.readouterr()
    for sample, rows in {"-1": [0], str(2**64): [0], "a\nb": [1], "\udcff": [1], "9" * 5000: [], "5": []}.items():
        assert [each["row"] for each in asked(path, capsys, "--sample", sample)["batches"]] == rows
    assert main(["batches", str(path), "--shared"]) == 0
    assert main(["triage", str(path)]) in (0, 1)


def test_the_samples_of_a_row(trained: Path, capsys: Captured) -> None:
    told = asked(trained, capsys, "--row", "5")["batches"]
    assert [len(set(each["samples"])) for each in told] == [BATCH, BATCH]
    assert main(["batches", str(trained), "--row", "5", "--rank", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "rank 1, row 5: 80 samples",
        " ".join(map(str, told[1]["samples"])),
    ]
    assert main(["batches", str(trained), "--row", "500"]) == 2
    assert "has no row 500; its last is 119" in capsys.readouterr().err


def test_a_long_list_is_shown_by_what_it_comes_to(trained: Path, capsys: Captured) -> None:
    main(["triage", "--rank", "all", str(trained)])
    text = " ".join(capsys.readouterr().out.split())
    assert "batch 80 samples from " in text and "next: evaluate batch 80 samples from " in text
    assert "[80 of " not in text


def test_the_report_says_how_to_make_the_batch_again(trained: Path, tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("jinja2", reason="reports need the extra [report]")
    assert main(["report", str(trained), "-o", str(tmp_path / "report.json")]) == 0
    told = json.loads((tmp_path / "report.json").read_text())
    [first, *_] = told["incidents"]
    row = first["first_bad"]["row"]
    assert any(
        "recorder.data.batch(loader, batch_id)" in step and f"spikeview batches RUN --row {row}" in step
        for step in first["feed_again"]["how"]
    )


def test_a_run_whose_ids_name_no_samples(tmp_path: Path, capsys: Captured) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for name, batch_id in (("named", "2-40"), ("nameless", None)):
        with FlightRecorder(tmp_path / name, model, optimizer) as recorder, recorder.transition(batch_id=batch_id):
            optimizer.step()
    assert main(["batches", str(tmp_path / "named"), "--sample", "3"]) == 2
    error = capsys.readouterr().err
    assert "its batch ids name no samples (2-40); record with `for ids, batch in recorder.data.identified(" in error
    assert main(["batches", str(tmp_path / "nameless"), "--sample", "3"]) == 2
    assert "has no batch ids" in capsys.readouterr().err
    assert main(["batches", str(tmp_path / "named")]) == 2
    assert "give one of --sample ID, --row N and --shared" in capsys.readouterr().err
