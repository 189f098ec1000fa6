"""Lightning's Trainer with the callback, row by row against the same loop written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning", reason="needs the extra [lightning]")

import lightning.pytorch as pl  # noqa: E402  # after the skip
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402  # after the skip

from recorder.integrations.lightning import SpikeviewCallback  # noqa: E402  # after the skip
from recorder.store import StoreError  # noqa: E402  # after the skip
from tests.integrations.by_hand import Pieces, by_hand, loss_of  # noqa: E402  # after the skip
from tests.integrations.conftest import differences  # noqa: E402  # after the skip

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*callbacks used to create the checkpoint:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated"),
    pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*before.*optimizer.step:UserWarning"),
]


class Regression(pl.LightningModule):
    def __init__(self, fused: bool = False) -> None:
        super().__init__()
        self.pieces = [Pieces(fused)]  # in a list, so that nothing of it is registered
        self.net = self.pieces[0].model

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        return {"loss": loss_of(self.net(x).float(), y)}

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log("val_loss", loss_of(self.net(x), y))

    def configure_optimizers(self) -> Any:
        pieces = self.pieces[0]
        return [pieces.optimizer], [{"scheduler": pieces.scheduler, "interval": "step"}]


def trainer(folder: Path, *callbacks: Any, **settings: Any) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    chosen = {"accelerator": "cpu", "max_epochs": 1, "enable_checkpointing": False, **quiet, **settings}
    return pl.Trainer(default_root_dir=folder, callbacks=list(callbacks), **chosen)


PLANS: dict[str, dict[str, Any]] = {
    "norm": {"gradient_clip_val": 0.5},
    "value": {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"},
    "accumulation": {"gradient_clip_val": 0.5, "accumulate_grad_batches": 4, "max_epochs": 2},
    "bf16": {"gradient_clip_val": 0.5, "precision": "bf16-mixed"},
    "max_steps": {"max_steps": 7, "max_epochs": None},
}


@pytest.mark.parametrize("plan", PLANS)
def test_rows_are_those_of_the_loop_written_by_hand(tmp_path: Path, rows: Any, plan: str) -> None:
    settings = PLANS[plan]
    model = Regression()
    trainer(tmp_path, SpikeviewCallback(tmp_path / "run", deep_every=1), **settings).fit(model, model.pieces[0].loader)
    limit = settings.get("gradient_clip_val")
    how = {"clip_value": limit} if plan == "value" else {"max_norm": limit}
    every, epochs = settings.get("accumulate_grad_batches", 1), 2 if plan == "accumulation" else 1
    dtype = torch.bfloat16 if plan == "bf16" else None
    hand = rows(by_hand(tmp_path / "hand", every, epochs, dtype=dtype, prefix="net.", **how))
    found = rows(tmp_path / "run")
    # Lightning throws the norm away that it clips by: the factor is the one of the norm that was measured before.
    assert differences(found, hand[:7] if plan == "max_steps" else hand, close=("clip_coef",)) == []
    assert len(found) == {"accumulation": 20, "max_steps": 7}.get(plan, 10)
    assert found[-1]["executed_n"] == found[-1]["scheduled_n"]


@pytest.mark.parametrize("fused", [False, True])
def test_fp16_with_steps_that_the_scaler_declines(tmp_path: Path, rows: Any, fused: bool) -> None:
    scale = {"init_scale": 2.0**20}
    model = Regression(fused)
    limit = None if fused else 0.5  # Lightning refuses to clip for an optimizer that unscales by itself
    plugin = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", **scale))
    callback = SpikeviewCallback(tmp_path / "run", deep_every=1)
    trainer(tmp_path, callback, plugins=[plugin], gradient_clip_val=limit).fit(model, model.pieces[0].loader)
    scaler = torch.amp.GradScaler("cpu", **scale)
    how = {"max_norm": limit, "fused": fused, "always": True, "prefix": "net."}
    hand = by_hand(tmp_path / "hand", dtype=torch.float16, scaler=scaler, **how)
    found = rows(tmp_path / "run")
    assert differences(found, rows(hand), close=("clip_coef",)) == []
    declined = sum(row["skip_reason"] == "amp_overflow" for row in found)
    assert 0 < declined < 10
    assert (found[-1]["executed_n"], found[-1]["scheduled_n"]) == (10 - declined, 10)


def test_weights_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    ended = []
    for callbacks in ([], [SpikeviewCallback(tmp_path / "run", deep_every=1)]):
        model = Regression()
        settings = {"accumulate_grad_batches": 3, "gradient_clip_val": 0.5, "max_epochs": 2}
        trainer(tmp_path, *callbacks, **settings).fit(model, model.pieces[0].loader)
        ended.append(model.state_dict())
    assert all(torch.equal(ended[0][name], ended[1][name]) for name in ended[0])


class Adversarial(pl.LightningModule):
    """Two optimizers that step in turn, by hand."""

    def __init__(self, clips: str = "norm") -> None:
        super().__init__()
        torch.manual_seed(1)
        self.automatic_optimization = False
        self.critic, self.generator = torch.nn.Linear(4, 1), torch.nn.Linear(4, 4)
        self.clips = clips
        self.seen: dict[str, list[tuple[float, float]]] = {"critic": [], "generator": []}

    def training_step(self, batch: Any, batch_idx: int) -> None:
        for name, optimizer in zip(self.seen, self.optimizers(), strict=True):
            optimizer.zero_grad()
            loss = (self.critic(self.generator(batch[0])) ** 2).mean() * (1 if name == "critic" else -1)
            self.manual_backward(loss)
            gradients = [p.grad.clone() for p in getattr(self, name).parameters()]
            self.seen[name].append((loss.item(), float(torch.nn.utils.get_total_norm(gradients))))
            self.clip_gradients(optimizer, gradient_clip_val=0.1, gradient_clip_algorithm=self.clips)
            optimizer.step()

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(getattr(self, name).parameters(), lr=0.1) for name in self.seen]


@pytest.mark.parametrize("clips", ["norm", "value"])
@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
def test_manual_optimization_with_two_optimizers(tmp_path: Path, rows: Any, clips: str, precision: str) -> None:
    """Under a scaler `clip_gradients` comes before Lightning unscales: what it cut to is said of scaled gradients."""
    model = Adversarial(clips)
    half = precision == "16-mixed"
    plugin = MixedPrecision(precision, "cpu", torch.amp.GradScaler("cpu", init_scale=1024.0)) if half else None
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 4)), 4)
    callback = SpikeviewCallback(tmp_path / "run", names=("critic", "generator"))
    trainer(tmp_path, callback, plugins=[plugin] if half else None).fit(model, batches)
    found = rows(tmp_path / "run")
    for name, seen in model.seen.items():
        own = [row for row in found if row["optimizer"] == name]
        scale = 1024.0 if half else 1.0
        assert [row["loss"] for row in own] == [loss for loss, _ in seen]
        assert [row["grad_norm"] * scale for row in own] == pytest.approx([norm for _, norm in seen], rel=1e-6)
        assert [row["batch_id"] for row in own] == ["0:0", "0:1", "0:2"]
        assert [row["executed_n"] for row in own] == [1, 2, 3]
        assert {row["grad_norm_is_unscaled"] for row in own} == {clips == "value" or not half}
        coefs = [min(1.0, 0.1 / (norm + 1e-6)) if clips == "norm" else None for _, norm in seen]
        assert [row["clip_coef"] for row in own] == [c if c is None else pytest.approx(c, rel=1e-5) for c in coefs]


def test_validation_checkpoints_and_resuming(tmp_path: Path, rows: Any, events: Any) -> None:
    saving = pl.callbacks.ModelCheckpoint(tmp_path / "saved", every_n_train_steps=6, save_top_k=-1)
    settings = {"enable_checkpointing": True, "val_check_interval": 5}
    whole = Regression()
    loader = whole.pieces[0].loader
    trainer(tmp_path, SpikeviewCallback(tmp_path / "run", deep_every=1), saving, **settings).fit(whole, loader, loader)
    again = Regression()
    resuming = trainer(tmp_path, SpikeviewCallback(tmp_path / "run", deep_every=1), max_epochs=1)
    resuming.fit(again, again.pieces[0].loader, ckpt_path=str(tmp_path / "saved" / "epoch=0-step=6.ckpt"))
    found = rows(tmp_path / "run")
    assert [row["step"] for row in found] == [*range(10), *range(6, 10)]
    assert [row["lr"] for row in found[10:]] == [row["lr"] for row in found[6:10]]
    # Lightning counts its batches on, but a loader without a state of its own begins anew: the names say which came.
    assert [row["batch_id"] for row in found[10:]] == [row["batch_id"] for row in found[:4]]
    assert events(tmp_path / "run", "checkpoint")[0]["name"] == "epoch=0-step=6"
    [resumed] = events(tmp_path / "run", "resume")
    assert resumed["from_checkpoint"] == "epoch=0-step=6"
    # Lightning restores neither the random state nor, without a loader that has a state, the position in the data.
    assert set(resumed["lost"]) == {"rng", "sampler"}
    assert resumed["lost"]["sampler"] == "position 0:0, was 0:6"
    assert {"model", "optimizer", "scheduler"} <= set(resumed["came_back"])
    assert [row["executed_n"] for row in found] == [*range(1, 11), *range(7, 11)]
    assert len(events(tmp_path / "run", "validation")) == 2


def test_fit_called_twice_goes_on_in_the_same_run(tmp_path: Path, rows: Any) -> None:
    model = Regression()
    twice = trainer(tmp_path, SpikeviewCallback(tmp_path / "run"))
    twice.fit(model, model.pieces[0].loader)
    twice.fit_loop.max_epochs = 2
    twice.fit(model, model.pieces[0].loader)
    found = rows(tmp_path / "run")
    assert [row["segment"] for row in found] == [0] * 10 + [1] * 10
    assert [row["executed_n"] for row in found] == list(range(1, 21))
    assert [row["step"] for row in found] == list(range(20))


@pytest.mark.parametrize("error", [ValueError("no more data"), KeyboardInterrupt()])
def test_what_ends_the_training_is_told_and_the_run_is_sealed(
    tmp_path: Path, rows: Any, events: Any, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ends(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx == 3:
                raise error
            return super().training_step(batch, batch_idx)

    model = Ends()
    monkeypatch.setattr("signal.signal", lambda *_: None)  # Lightning turns Ctrl-C off for the whole process
    with pytest.raises((ValueError, SystemExit)):
        trainer(tmp_path, SpikeviewCallback(tmp_path / "run")).fit(model, model.pieces[0].loader)
    assert [row["executed"] for row in rows(tmp_path / "run")] == [True, True, True, False]
    [told] = events(tmp_path / "run", "exception")
    assert type(error).__name__ in told["text"]


def test_a_run_that_is_there_is_refused_before_the_first_step(tmp_path: Path) -> None:
    model = Regression()
    for refused in (False, True):
        fresh = trainer(tmp_path, SpikeviewCallback(), max_steps=1)  # without a directory: the Trainer's own
        if refused:
            with pytest.raises(StoreError, match="resume=True"):
                fresh.fit(model, model.pieces[0].loader)
        else:
            fresh.fit(model, model.pieces[0].loader)
            assert (tmp_path / "spikeview" / "run.json").exists()


def test_a_callback_in_two_trainers_counts_on(tmp_path: Path, rows: Any, events: Any) -> None:
    callback = SpikeviewCallback(tmp_path / "run")
    for _ in range(2):
        model = Regression()
        trainer(tmp_path, callback, max_steps=3).fit(model, model.pieces[0].loader)
    assert [row["step"] for row in rows(tmp_path / "run")] == list(range(6))
    assert [note for note in events(tmp_path / "run", "note") if "counts on from 3" in note["text"]]


@pytest.mark.filterwarnings("ignore:SWA is currently only supported every epoch")
def test_a_scheduler_that_is_replaced_is_followed(tmp_path: Path, rows: Any, events: Any) -> None:
    averaging = pl.callbacks.StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=2)
    model = Regression()
    fitting = trainer(tmp_path, SpikeviewCallback(tmp_path / "run"), averaging, max_epochs=3)
    fitting.fit(model, model.pieces[0].loader)
    # One step for each batch of the first epoch, then averaging's own: one for each epoch.
    assert [row["scheduled_n"] for row in rows(tmp_path / "run")][9::10] == [10, 11, 12]
    assert ["SWALR" in note["text"] for note in events(tmp_path / "run", "note")] == [True]


def test_a_callback_that_comes_late_says_that_it_records_nothing(tmp_path: Path) -> None:
    class Adds(pl.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 1:
                trainer.callbacks.append(SpikeviewCallback(tmp_path / "run"))

    model = Regression()
    with pytest.warns(RuntimeWarning, match="had begun") as told:
        trainer(tmp_path, Adds(), max_steps=3).fit(model, model.pieces[0].loader)
    assert len([each for each in told if "SpikeviewCallback" in str(each.message)]) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:.*configure_optimizers. returned .None.*")
def test_without_an_optimizer_there_is_nothing_to_record(tmp_path: Path) -> None:
    class Frozen(Regression):
        def configure_optimizers(self) -> Any:
            return None

    model = Frozen()
    with pytest.warns(RuntimeWarning, match="nothing to record"):
        trainer(tmp_path, SpikeviewCallback(tmp_path / "run"), max_steps=2).fit(model, model.pieces[0].loader)
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:.*does not have many workers.*")
def test_a_search_for_the_learning_rate_is_neither_recorded_nor_a_resume(
    tmp_path: Path, rows: Any, events: Any
) -> None:
    class Searched(Regression):
        lr = 0.01

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=self.lr)

    for refused in (False, True):
        model = Searched()
        finder = pl.callbacks.LearningRateFinder(num_training_steps=4)
        searching = trainer(tmp_path, SpikeviewCallback(tmp_path / "run"), finder, max_steps=3)
        if refused:
            with pytest.raises(StoreError, match="resume=True"):
                searching.fit(model, model.pieces[0].loader)
        else:
            searching.fit(model, model.pieces[0].loader)
    assert [row["step"] for row in rows(tmp_path / "run")] == [0, 1, 2]
    assert events(tmp_path / "run", "resume") == []
