"""What the loop itself announces takes more to be news; the first update after a resume takes less."""

from __future__ import annotations

from typing import Any

from spikeview.analysis.episodes import incidents
from spikeview.analysis.observations import observe
from tests.analysis.series import healthy, run_of

ROWS, AT = 300, 150
STAGE = [0] * AT + [1] * (ROWS - AT)


def seen(factor: float = 1.0, update: float = 1.0, **columns: list[Any]) -> list[tuple[int, str]]:
    """What is seen where the loss is higher by a factor from a row on, and one update of that row larger by another."""
    own: dict[str, Any] = {**healthy(ROWS), **columns}
    own["loss"] = [2.0 + 0.1 * ((row * 7919) % 13 - 6) / 6 for row in range(ROWS)]
    own["loss"][AT:] = [factor * value for value in own["loss"][AT:]]
    own["update_ratio"][AT] = update * 1e-3
    run = run_of(own)
    return [(each.first_bad.position, each.first_bad.signal) for each in incidents(run, observe(run).observed)]


def test_a_loss_that_moves_with_announced_data_is_no_news_unless_it_moves_far() -> None:
    assert seen(1.4) == [(AT, "loss")]
    assert seen(1.4, user_stage=STAGE) == []
    assert seen(4.0, user_stage=STAGE) == [(AT, "loss")]


def test_a_field_that_changes_all_the_time_announces_nothing() -> None:
    assert seen(1.4, user_length=[row % 5 for row in range(ROWS)]) == [(AT, "loss")]


def test_the_first_update_after_a_resume_is_looked_at_more_closely() -> None:
    assert seen(update=1.8) == []
    assert seen(update=1.8, segment=STAGE) == [(AT, "update_ratio")]
    assert seen(segment=STAGE) == []
