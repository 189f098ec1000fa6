"""The whole content of two reports, line by line, as it was looked at and found right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spikeview.report.content import content
from spikeview.rules.diagnosis import Diagnosis

GOLDEN = Path(__file__).parent / "golden"


def lines(value: Any, path: str = "") -> Iterator[str]:
    """A path and a value for everything that holds nothing further."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(item, (dict, list)) and item for item in inner):
        yield f"{path} = {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from lines(item, f"{path}.{name}" if path else name)
    else:
        for at, item in enumerate(value):
            yield from lines(item, f"{path}[{at}]")


@pytest.mark.parametrize("name", ["explosion", "skips"])
def test_the_content_is_what_it_was(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> None:
    """What differs is in the message; where that is right, put the new file in the place of the old one."""
    diagnosis: Diagnosis = request.getfixturevalue(name)
    said = content(diagnosis, note="a word")
    del said["spikeview_version"], said["checklist"]  # the list and its evidence are tested with the rules
    said["checks"]["not_applicable"] = [each["id"] for each in said["checks"]["not_applicable"]][:1]
    found, new = list(lines(said)), tmp_path / f"{name}.txt"
    new.write_text("\n".join([*found, ""]), "utf-8")
    golden = GOLDEN / f"{name}.txt"
    assert found == golden.read_text("utf-8").splitlines(), f"cp {new} {golden}"
