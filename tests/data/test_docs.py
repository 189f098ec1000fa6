"""What docs/batch_ids.md shows is run as printed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402  # after the skip

from spikeview.cli import main  # noqa: E402  # after the skip

PAGE = Path(__file__).parents[2] / "docs" / "batch_ids.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    x = torch.randn(9000, 8)
    model = torch.nn.Linear(8, 1)
    words = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05),
        "loss_fn": torch.nn.functional.mse_loss,
        "loader": DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64, shuffle=True),
        "stream": DataLoader([{"path": "a.jpg"}, {"path": "b.jpg"}], batch_size=2),  # type: ignore[arg-type]
    }
    loop, stream, again = blocks("python")
    exec(loop, words)  # noqa: S102  # it is ours
    given = words["x"]
    assert torch.equal(given, x[list(words["ids"])])  # type: ignore[call-overload]
    exec(again, words)  # noqa: S102
    assert torch.equal(words["x"], given)  # type: ignore[arg-type]
    exec(stream, words)  # noqa: S102
    [(names, _)] = words["loader"]  # type: ignore[misc]
    assert list(names) == ["a.jpg", "b.jpg"]

    [commands] = blocks("sh")
    asked = [line.partition("#")[0].split() for line in commands.splitlines()]
    assert [line[0] for line in asked] == ["spikeview"] * 3
    assert main(asked[0][1:]) == 0
    assert "sample 8217: in 1 row of 141" in capsys.readouterr().out
    assert main(asked[1][1:]) == 0
    assert "rank 0, row 122: 64 samples" in capsys.readouterr().out
    assert main(asked[2][1:]) == 0
    assert "0 incidents began with a batch" in capsys.readouterr().out
    assert os.listdir() == ["runs"]  # noqa: PTH208
