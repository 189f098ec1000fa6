"""A zip file from elsewhere: it is opened, or refused with a line that says why; nothing of it gets out."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spikeview.importers import RunError, open_run, unpacking
from spikeview.report.bundle import write_bundle
from spikeview.rules.diagnosis import diagnose

SAMPLE = Path(__file__).parents[2] / "sample_runs" / "bf16_explosion"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(diagnose(open_run(SAMPLE)), 1, tmp_path_factory.mktemp("good") / "good.zip")


@pytest.fixture
def attack(good: Path, tmp_path: Path) -> Callable[..., Path]:
    """A bundle with a further entry, or with another in the place of one."""

    def build(entry: zipfile.ZipInfo | str, data: bytes = b"x", instead: str = "") -> Path:
        path = tmp_path / "attack.zip"
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for each in source.infolist():
                if each.filename != instead:
                    target.writestr(each, source.read(each))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a name is there twice
                target.writestr(entry, data)
        return path

    return build


def refused(path: Path) -> str:
    before = sorted(path.parent.iterdir())
    with pytest.raises(RunError) as caught:
        open_run(path)
    assert "\n" not in str(caught.value)
    assert sorted(path.parent.iterdir()) == before
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["../evil", "run/../../evil", "/etc/evil", "run\\..\\evil", "C:evil", "run/steps/rank=0/../../../../evil.parquet"],
)
def test_a_name_that_leads_out_is_refused(attack: Callable[..., Path], name: str) -> None:
    assert "which leads out of the bundle" in refused(attack(name))


def test_a_link_is_refused(attack: Callable[..., Path]) -> None:
    link = zipfile.ZipInfo("run/events-rank=1.jsonl")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "which is a link or a device" in refused(attack(link, b"/etc/passwd"))


def test_a_name_that_is_there_twice_is_refused(attack: Callable[..., Path]) -> None:
    assert "which is there twice" in refused(attack("run/run.json"))


def test_a_bomb_is_refused(attack: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = attack("run/events-rank=1.jsonl", b"\0" * (2 * unpacking.UNSUSPICIOUS))
    assert "as only a zip bomb does" in refused(bomb)
    monkeypatch.setattr(unpacking, "LARGEST", unpacking.UNSUSPICIOUS)
    assert "more than the 67,108,864 of a bundle" in refused(bomb)


def test_more_entries_than_any_bundle_has_are_refused(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 3)
    assert "holds 8 files, more than the 3 of a bundle" in refused(good)


def test_more_values_than_any_bundle_has_are_refused(
    attack: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Parquet a few bytes are a million equal rows."""
    monkeypatch.setattr(unpacking, "MOST_CELLS", 4_000_000)
    part = tmp_path / "part.parquet"
    pq.write_table(pa.table({f"c{at}": np.zeros(1_000_000) for at in range(5)}), part, compression="zstd")
    assert part.stat().st_size < 50_000
    name = "run/layers/rank=0/part-000000.parquet"
    said = refused(attack(name, part.read_bytes(), instead=name))
    assert "values, more than the 4,000,000 of a bundle" in said


def test_an_encrypted_entry_is_refused(good: Path, tmp_path: Path) -> None:
    data = bytearray(good.read_bytes())
    place = data.index(b"PK\x01\x02")
    data[place + 8] |= 1
    path = tmp_path / "locked.zip"
    path.write_bytes(data)
    assert "which is encrypted" in refused(path)


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
def test_half_a_bundle_gets_one_line(good: Path, tmp_path: Path, cut: float) -> None:
    path = tmp_path / "half.zip"
    path.write_bytes(good.read_bytes()[: int(cut * good.stat().st_size)])
    assert "is a damaged zip file" in refused(path)


def test_another_zip_file_is_to_be_unpacked_first(tmp_path: Path) -> None:
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run/run.json", "{}")
    assert "is a zip file without a bundle.json, so it is no bundle; unpack it" in refused(path)


def test_a_flipped_bit_in_the_rows_gets_one_line(good: Path, tmp_path: Path) -> None:
    data = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as archive:
        [steps] = [each for each in archive.infolist() if "steps" in each.filename]
    data[steps.header_offset + 400] ^= 1
    path = tmp_path / "flipped.zip"
    path.write_bytes(data)
    assert "is a damaged zip file" in refused(path)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"schema": "spikeview.bundle", "schema_version": 2}, "is a bundle of version 2, and this one reads up to 1"),
        ({"schema": "something"}, "is that of something else"),
        ([], "is that of something else"),
    ],
)
def test_what_is_no_bundle_of_ours_is_refused(attack: Callable[..., Path], said: object, says: str) -> None:
    assert says in refused(attack("bundle.json", json.dumps(said).encode(), instead="bundle.json"))


def test_an_unknown_file_is_harmless_and_stays_where_it_is(
    attack: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    seen: list[tuple[str, int]] = []
    read = unpacking.unpack

    def watched(path: Path, opened: zipfile.ZipFile, prefix: str, target: Path) -> None:
        read(path, opened, prefix, target)
        seen.extend((file.name, stat.S_IMODE(target.stat().st_mode)) for file in target.rglob("*") if file.is_file())

    monkeypatch.setattr(unpacking, "unpack", watched)
    run = open_run(attack("run/steps/rank=0/setup.py", b"import os"))
    assert len(run) == 12
    assert {name for name, _ in seen} == {"run.json", "events.jsonl", "part-000000.parquet"}
    if os.name == "posix":
        assert {mode for _, mode in seen} == {0o700}
    assert list(place.iterdir()) == []
