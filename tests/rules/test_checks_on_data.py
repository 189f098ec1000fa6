"""The checks on losses, inputs, batches, resumes and ranks, on real loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from recorder import CapturePolicy, FlightRecorder  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import diagnose  # noqa: E402  # after the skip
from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from spikeview.run import Run  # noqa: E402  # after the skip
from tests.rules.recorded import Loop, Step, check, mlp, record  # noqa: E402  # after the skip

FAILED, PASSED, NOT_APPLICABLE, CANNOT_TELL = (
    Outcome.FAILED,
    Outcome.PASSED,
    Outcome.NOT_APPLICABLE,
    Outcome.CANNOT_TELL,
)


def adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def counted(wrong: Callable[[int], int], lengths: bool = False) -> Step:
    """A step whose loss is a sum over targets, divided by `wrong` times fewer of them than there are."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        kept = 8 + 7 * row % 24 if lengths else 32
        x, y = x[:kept], y[:kept]
        loop.optimizer.zero_grad()
        count = kept // wrong(row)
        loss = torch.nn.functional.mse_loss(loop.model(x), y, reduction="sum") / count
        t.observe_loss(loss, count=count)
        loss.backward()
        t.clip_grad_norm_(1.0)
        loop.optimizer.step()

    return step


def test_a_denominator_that_was_halved_and_one_that_varies(tmp_path: Path) -> None:
    told: dict[str, Any] = {"rows": 120, "batch": 32, "optimizer": adam}
    halved = check(
        record(tmp_path / "halved", counted(lambda row: 1 + (row >= 70)), **told), "loss_denominator_changed"
    )
    assert halved.outcome is FAILED
    assert halved.rows == (70,)
    assert halved.evidence.startswith("loss count 32 to 16 at row 70: loss ")
    noisy = record(tmp_path / "noisy", counted(lambda row: 1 + (row >= 80)), 160, batch=6, noise=3.0, optimizer=adam)
    assert check(noisy, "loss_denominator_changed").rows == (80,)
    for name, step in {"varied": counted(lambda row: 1, lengths=True), "kept": counted(lambda row: 1)}.items():
        assert check(record(tmp_path / name, step, **told), "loss_denominator_changed").outcome is PASSED, name
    silent = check(record(tmp_path / "silent", **told), "loss_denominator_changed")
    assert (silent.outcome, silent.missing) == (CANNOT_TELL, ("loss_sum", "loss_count"))


def smoothing(keep: float) -> Step:
    mean: list[float] = []

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        mean[:] = [keep * mean[0] + (1 - keep) * float(loss.detach()) if mean else float(loss.detach())]
        t.observe_loss(mean[0])
        loss.backward()
        t.measure_grad_norm()
        loop.optimizer.step()

    return step


def test_a_loss_that_was_smoothed_and_one_that_is_smooth(tmp_path: Path) -> None:
    told: dict[str, Any] = {"rows": 300, "optimizer": adam}
    for keep in (0.6, 0.9, 0.98):
        smoothed = check(record(tmp_path / str(keep), smoothing(keep), **told), "loss_smoothed")
        assert smoothed.outcome is FAILED, (keep, smoothed.evidence)
        assert smoothed.evidence.endswith("it is averaged over rows")
    assert check(record(tmp_path / "raw", smoothing(0.0), **told), "loss_smoothed").outcome is PASSED
    first: list[Any] = []

    def full(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        first[:] = first or [(x, y)]
        smoothing(0.0)(loop, t, row, *first[0])

    smooth = check(record(tmp_path / "smooth", full, **told), "loss_smoothed")
    assert smooth.outcome is CANNOT_TELL
    assert "so does the pre-clip norm" in smooth.evidence


def scaled(factor: Callable[[int], float], of_targets: bool = False) -> Step:
    """A step whose inputs, or targets, are multiplied."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        x, y = (x, y * factor(row)) if of_targets else (x * factor(row), y)
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        t.observe_inputs(x)
        t.observe_loss(loss)
        loss.backward()
        t.clip_grad_norm_(1.0)
        loop.optimizer.step()

    return step


def test_inputs_in_other_units_and_inputs_that_grow(tmp_path: Path) -> None:
    units = check(record(tmp_path / "units", scaled(lambda row: 1000.0 if row >= 80 else 1.0)), "input_scale_shift")
    assert (units.outcome, units.rows) == (FAILED, (80,))
    assert "where it was about 2." in units.evidence
    once = check(record(tmp_path / "once", scaled(lambda row: 1000.0 if row == 80 else 1.0)), "input_scale_shift")
    assert (once.outcome, once.rows) == (FAILED, (80,))
    growing = check(record(tmp_path / "growing", scaled(lambda row: 1.06**row)), "input_scale_shift")
    assert growing.outcome is PASSED
    assert float(growing.evidence.split()[4].rstrip(",")) > 100 * float(growing.evidence.split()[2])


def with_batch(wrong: Callable[[int], float | None], of_targets: bool = False) -> Step:
    """A step that gives its batch for captures, and tells no inputs; one number of it may be replaced."""

    def step(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        if (value := wrong(row)) is not None:
            (y if of_targets else x)[0, 0] = value
        t.observe_batch({"x": x, "y": y})
        loop.optimizer.zero_grad()
        loss = loop.loss(x, y)
        t.observe_loss(loss)
        loss.backward()
        t.clip_grad_norm_(1.0)
        if t.should_step:
            loop.optimizer.step()

    return step


@pytest.mark.parametrize(
    ("value", "rule", "told"),
    [
        (float("nan"), "loss_nonfinite", "loss NaN at row 60, largest input NaN"),
        # tanh makes a finite loss of it, and a derivative of 0
        (float("-inf"), "grad_nonfinite_loss_finite", "; largest input Inf"),
    ],
)
def test_a_batch_given_for_captures_names_what_is_no_number_in_it(
    value: float, rule: str, told: str, tmp_path: Path
) -> None:
    step = with_batch(lambda row: value if row == 60 else None)
    diagnosis = diagnose(record(tmp_path / "run", step, rows=80, capture=CapturePolicy()))
    [diagnosed] = diagnosis.incidents
    assert (diagnosed.findings[0].id, diagnosed.findings[0].verdict) == (rule, "matched")
    assert told in diagnosed.findings[0].evidence
    assert check(diagnosis, "input_scale_shift").rows == (60,)


def test_a_batch_of_finite_numbers_given_for_captures_says_nothing_of_its_inputs(tmp_path: Path) -> None:
    step = with_batch(lambda row: 1e6 if row == 60 else None, of_targets=True)
    run = record(tmp_path / "run", step, rows=80, capture=CapturePolicy())
    assert len(diagnose(run).incidents) == 1
    assert not run.recorded("input_absmax").any()


def test_a_poisoned_batch_that_returns_with_every_epoch(tmp_path: Path) -> None:
    def poisoned(where: Callable[[int], bool]) -> Step:
        return scaled(lambda row: 30.0 if where(row) else 1.0, of_targets=True)

    told: dict[str, Any] = {"rows": 240, "batch_id": lambda row: f"b{row % 60}", "optimizer": adam}
    same = check(record(tmp_path / "same", poisoned(lambda row: row % 60 == 37), **told), "repeated_batch")
    assert same.outcome is FAILED, same.evidence
    assert same.evidence == "batch b37 was out on 4 of the 4 rows it came on since: rows 37, 97, 157, 217"
    other = record(tmp_path / "other", poisoned(lambda row: row in (37, 99, 171, 226)), **told)
    assert len(diagnose(other).incidents) > 2
    assert check(other, "repeated_batch").outcome is PASSED
    assert check(record(tmp_path / "none"), "repeated_batch").outcome is NOT_APPLICABLE


ALL = ["model", "optimizer", "scheduler", "rng", "sampler"]


def resumed(path: Path, restored: list[str] | None, lost: tuple[str, ...] = (), optimizer: Any = adam) -> Run:
    """Sixty rows, a checkpoint, and sixty more in which what is `lost` did not come back."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    saved: dict[str, Any] = {}
    random = torch.get_rng_state()
    for segment in range(2):
        model = mlp()
        own = optimizer(model)
        schedule = torch.optim.lr_scheduler.LambdaLR(own, lambda step: 0.98**step)
        parts = {"model": model, "optimizer": own, "scheduler": schedule}
        for name, state in saved.items():
            if name not in lost:
                parts[name].load_state_dict(state)
        if "optimizer" in lost and saved:
            own.param_groups[0]["lr"] = saved["scheduler"]["_last_lr"][0]
        with FlightRecorder(path, model, own, scheduler=schedule, max_norm=1.0, resume=segment > 0) as recorder:
            if segment:
                torch.set_rng_state(random)
            if segment and restored is not None:
                recorder.resumed("last.pt", restored=restored)
            loop = Loop(model, own, recorder, None, 8, 0.3)
            fresh = 60 * segment * ("sampler" not in lost)
            for row, (x, y) in list(enumerate(loop.batches(120)))[fresh : fresh + 60]:
                with recorder.transition(batch_id=row) as t:
                    own.zero_grad()
                    loss = loop.loss(x, y)
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_()
                    own.step()
                    schedule.step()
            recorder.checkpoint("last.pt")
            random = torch.get_rng_state()
        saved = {name: part.state_dict() for name, part in parts.items()}
    return open_run(path)


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("optimizer", "the optimizer has no history: cosine"),
        ("scheduler", "learning rate starts over at 0.0009800, after 0.0003036 before the resume"),
        ("sampler", "batches start over with 0, the run's first"),
    ],
)
def test_what_a_resume_does_not_bring_back_shows_in_the_rows(lost: str, says: str, tmp_path: Path) -> None:
    found = check(resumed(tmp_path, ALL, (lost,)), "resume_incomplete")
    assert found.outcome is FAILED, found.evidence
    assert found.evidence.startswith("resumed at row 60: ")
    assert says in found.evidence
    assert found.rows == (60,)


def test_a_resume_that_brings_everything_back(tmp_path: Path) -> None:
    assert check(resumed(tmp_path / "all", ALL), "resume_incomplete").outcome is PASSED
    silent = check(resumed(tmp_path / "silent", None), "resume_incomplete")
    assert (silent.outcome, silent.missing) == (CANNOT_TELL, ("restored",))
    told = check(resumed(tmp_path / "told", ["model", "optimizer"]), "resume_incomplete")
    assert told.outcome is FAILED
    assert told.evidence == "resumed at row 60: not restored: sampler", "the others were measured to be as they were"
    assert check(record(tmp_path / "none", rows=20), "resume_incomplete").outcome is NOT_APPLICABLE


def test_a_batch_of_another_size_is_no_other_denominator(tmp_path: Path) -> None:
    def smaller(loop: Loop, t: Any, row: int, x: Any, y: Any) -> None:
        kept = 32 if row < 70 else 16
        loop.optimizer.zero_grad()
        loss = loop.loss(x[:kept], y[:kept])
        t.observe_loss(loss, count=kept)
        loss.backward()
        t.clip_grad_norm_(1.0)
        loop.optimizer.step()

    found = check(record(tmp_path, smaller, 160, batch=32, optimizer=adam), "loss_denominator_changed")
    assert (found.outcome, found.evidence) == (PASSED, "the loss count changed, and the sum with it")
