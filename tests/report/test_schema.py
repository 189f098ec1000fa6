"""What docs/report.md says of the JSON is what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spikeview.report.content import CONTENT_VERSION, content
from spikeview.rules.diagnosis import Diagnosis

DOCUMENT = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
# Whose keys are the run's own.
FREE = {"manifest", "events", "versions"}


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            if name not in FREE:
                yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_every_key_is_documented_and_the_version_too(explosion: Diagnosis, skips: Diagnosis) -> None:
    documented = set(re.findall(r"`([a-z_]+)`", DOCUMENT))
    for diagnosis in (explosion, skips):
        assert set(keys(content(diagnosis, most=1))) <= documented
    assert f"`schema_version` is {CONTENT_VERSION}." in DOCUMENT


def test_every_documented_key_of_an_incident_is_there(explosion: Diagnosis) -> None:
    section = DOCUMENT.split("One of `incidents`:")[1].split("\n\n")[1]
    heads = {name for row in section.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert heads == set(content(explosion)["incidents"][0])


def test_the_limits_that_are_stated_are_those_that_hold() -> None:
    from spikeview.importers import unpacking
    from spikeview.report import excerpt

    assert f"holds {excerpt.BEFORE:,} rows before the first bad one and {excerpt.AFTER} after" in DOCUMENT
    assert f"{unpacking.MOST_ENTRIES:,} entries" in DOCUMENT
    assert f"at most {unpacking.LARGEST // 2**30} GiB and {unpacking.RATIO} times" in DOCUMENT
