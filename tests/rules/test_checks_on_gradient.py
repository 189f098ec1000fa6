"""The checks on gradients, their sums, their groups and the direction of updates, on real loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, Step, check, record, sgd  # noqa: E402  # after the skip

FAILED, PASSED, NOT_APPLICABLE, CANNOT_TELL = (
    Outcome.FAILED,
    Outcome.PASSED,
    Outcome.NOT_APPLICABLE,
    Outcome.CANNOT_TELL,
)
OPTIMIZERS = {
    "sgd": sgd,
    "momentum": lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    "adamw": lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3),
}


def unclipped(forgets: int | None = None) -> Step:
    """A step without clipping, which forgets to clear the gradients from one row on."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        if forgets is None or row < forgets:
            loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        t.observe_loss(loss)
        loss.backward()
        t.measure_grad_norm()
        loop.optimizer.step()

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_that_are_never_cleared(name: str, tmp_path: Path) -> None:
    make = OPTIMIZERS[name]
    forgotten = check(record(tmp_path / "forgotten", unclipped(0), 80, optimizer=make), "gradients_not_cleared")
    assert forgotten.outcome is FAILED
    assert forgotten.rows[0] <= 1
    assert "as a sum of gradients does" in forgotten.evidence
    cleared = check(record(tmp_path / "cleared", unclipped(), 80, optimizer=make), "gradients_not_cleared")
    assert cleared.outcome is PASSED


def test_gradients_that_are_no_longer_cleared_from_one_row_on(tmp_path: Path) -> None:
    later = record(tmp_path, unclipped(60), 120, optimizer=OPTIMIZERS["adamw"])
    found = check(later, "gradients_not_cleared")
    assert found.outcome is FAILED
    assert 55 <= found.rows[0] <= 65


def test_a_norm_that_explodes_or_jumps_is_no_sum(tmp_path: Path) -> None:
    def explode(model: Any) -> Any:
        return torch.optim.SGD(model.parameters(), lr=0.6)

    exploding = record(tmp_path / "explodes", unclipped(), 60, optimizer=explode)
    assert exploding.values("grad_norm")[20] > 5 * exploding.values("grad_norm")[0]
    assert check(exploding, "gradients_not_cleared").outcome is not FAILED

    def jump(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        unclipped()(loop, t, row, x, y * (10 if row >= 40 else 1))

    assert check(record(tmp_path / "jumps", jump, 100), "gradients_not_cleared").outcome is PASSED
    clipped = check(record(tmp_path / "clipped", rows=60, max_norm=0.05), "gradients_not_cleared")
    assert clipped.outcome is CANNOT_TELL, "what is cut on every row cannot build up"


class Headed(torch.nn.Module):
    """A body and a head; the head's inputs are multiplied, and with them its gradient."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32))
        self.head = torch.nn.Linear(32, 1)
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x) * self.factor) / self.factor


def test_a_small_group_that_makes_up_the_norm(tmp_path: Path) -> None:
    told: dict[str, Any] = {"rows": 60, "deep_every": 10, "optimizer": OPTIMIZERS["adamw"]}
    heavy = check(record(tmp_path / "heavy", unclipped(), model=lambda: Headed(0.01), **told), "group_dominates_norm")
    assert heavy.outcome is FAILED, heavy
    assert heavy.evidence.startswith("group head holds over 90 % of the squared norm on ")
    assert heavy.evidence.endswith("and 33 % of the parameters")
    even = check(record(tmp_path / "even", unclipped(), model=lambda: Headed(1.0), **told), "group_dominates_norm")
    assert even.outcome is PASSED
    shallow = {**told, "deep_every": 0, "triggers": ()}
    unknown = check(
        record(tmp_path / "size", unclipped(), model=lambda: Headed(0.01), **shallow), "group_dominates_norm"
    )
    assert (unknown.outcome, unknown.missing) == (CANNOT_TELL, ("layers",))


def test_a_group_with_nearly_all_parameters_may_hold_nearly_all_of_the_norm(tmp_path: Path) -> None:
    def decayed(model: Any) -> Any:
        weights = [p for p in model.parameters() if p.ndim > 1]
        rest = [p for p in model.parameters() if p.ndim < 2]
        return torch.optim.AdamW([{"params": weights}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)

    def tilted(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        unclipped()(loop, t, row, x * 8, y * 8)

    found = check(record(tmp_path, tilted, 60, optimizer=decayed), "group_dominates_norm")
    assert found.outcome is PASSED
    assert found.evidence.startswith("group 0 holds over 90 % ")
    assert "of the parameters" in found.evidence


def test_a_norm_that_grows_in_another_way_is_no_sum_of_gradients(tmp_path: Path) -> None:
    def growing(factor: float, from_row: int) -> Step:
        def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
            loop.optimizer.zero_grad()
            loss = loop.loss(x, y)
            t.observe_loss(loss)
            (loss * factor ** max(0, row - from_row)).backward()
            t.measure_grad_norm()
            loop.optimizer.step()

        return step

    frozen = lambda model: torch.optim.SGD(model.parameters(), lr=1e-9)  # noqa: E731
    for name, step in (("slowly", growing(1.1, 0)), ("later", growing(1.1, 60)), ("explodes", growing(1.6, 60))):
        found = check(record(tmp_path / name, step, 120, optimizer=frozen), "gradients_not_cleared")
        assert found.outcome is PASSED, (name, found.evidence)


def test_updates_that_turn_against_their_gradients(tmp_path: Path) -> None:
    def momentum(model: Any) -> Any:
        return torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.5)

    def raised(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        if row == 550:
            loop.optimizer.param_groups[0]["momentum"] = 0.99
        unclipped()(loop, t, row, x, y)

    turned = check(record(tmp_path / "turned", raised, 1100, optimizer=momentum), "alignment_shift")
    assert turned.outcome is FAILED, turned.evidence
    assert abs(turned.rows[0] - 550) <= 40
    kept = check(record(tmp_path / "kept", unclipped(), 1100, optimizer=momentum), "alignment_shift")
    assert kept.outcome is PASSED
