"""SpikeviewCallback for Lightning's Trainer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from recorder.fingerprint import Fingerprint
from recorder.flight import FlightRecorder
from recorder.integrations.following import Following
from recorder.integrations.late import warn_late
from recorder.integrations.lightning.library import callback_class
from recorder.integrations.lightning.methods import TrainerMethods, clips_by_norm
from recorder.integrations.lightning.optimizers import Optimizers
from recorder.integrations.lightning.places import Place
from recorder.integrations.replacing import replaced

_NO_OPTIMIZER = "configure_optimizers gave no optimizer with parameters: SpikeviewCallback has nothing to record"


class SpikeviewCallback(Following, callback_class()):  # type: ignore[misc]  # one of two classes
    """Records each call of `trainer.fit()` as one segment of a run.

    `directory` is `spikeview` within the Trainer's log directory where none is given. `batch_id` names a batch; without
    it a batch is `epoch:index`. Several optimizers are called `optimizer_0` and so on unless `names` has their names,
    in the order of `configure_optimizers`. `settings` are those of `FlightRecorder`; `resume=True` is implied where the
    Trainer is given a checkpoint.
    """

    def __init__(
        self,
        directory: str | PathLike[str] | None = None,
        *,
        batch_id: Callable[[Any], Any] | None = None,
        names: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__()
        self._directory = directory
        self._name_batch = batch_id
        self._names = tuple(names)
        self._settings = settings
        self._optimizers: Optimizers | None = None
        self._methods: TrainerMethods | None = None
        self._place = Place()
        self._has_recorded = False
        self._is_late = False
        self._last_step = -1
        self._offset = 0
        self._resumed_from: str | None = None
        self._state: dict[str, Any] | None = None
        self._arrived: Fingerprint | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Make the recorder, with everything prepared and loaded; raises what `FlightRecorder` raises."""
        self._let_go()
        if not any(group["params"] for optimizer in trainer.optimizers for group in optimizer.param_groups):
            warnings.warn(_NO_OPTIMIZER, RuntimeWarning, stacklevel=2)
            self._is_late = True
            return
        self._optimizers = Optimizers(trainer, self._names)
        # A finder of learning rates or batch sizes leaves the path of its own checkpoint there, and nothing trained.
        checkpoint = trainer.ckpt_path if trainer.global_step else None
        resumes = self._has_recorded or checkpoint is not None
        is_by_norm = clips_by_norm(trainer.gradient_clip_algorithm)
        self.recorder = FlightRecorder(
            self._run(trainer),
            pl_module,
            self._optimizers.named,
            scaler=getattr(trainer.precision_plugin, "scaler", None),
            scheduler=self._optimizers.schedulers,
            max_norm=(trainer.gradient_clip_val or None) if is_by_norm else None,
            **{"resume": resumes, **self._settings, **({"resume": True} if self._has_recorded else {})},
        )
        # A training that begins anew in the same run goes on counting where the last one ended.
        self._offset = self._last_step + 1 if trainer.global_step == 0 else 0
        if self._offset:
            self.recorder.note(f"fit() began anew: step counts on from {self._offset}, and the Trainer's from 0")
        self._has_recorded = True
        self._place.forget_epoch()
        self._resumed_from = None if checkpoint is None else Path(str(checkpoint)).stem
        if self._state is not None:
            self.recorder.load_state_dict(self._state)
            self._state = None
        if self._resumed_from is not None:
            self._arrived = self.recorder.fingerprint()  # before the first batch draws from the random state
        self._methods = TrainerMethods(self, self._optimizers, not pl_module.automatic_optimization)
        for owner, name in (
            (trainer.strategy, "training_step"),
            (trainer.strategy, "backward"),
            (trainer.precision_plugin, "clip_gradients"),
        ):
            self._replaced.enter_context(replaced(owner, name, getattr(self._methods, name)))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        recorder = self.recorder
        if recorder is None or self._optimizers is None:
            if not self._is_late:
                self._is_late = True
                warn_late("fit()")
            return
        self._optimizers.see_schedulers(recorder, trainer)
        name: Any = self._place.begin(trainer, batch_idx)
        if self._resumed_from is not None:
            recorder.resumed(self._resumed_from, sampler=name, now=self._arrived)
            self._resumed_from = self._arrived = None
        if self._name_batch is not None:
            with recorder.guard:
                name = self._name_batch(batch)
        self._last_step = self._offset + trainer.global_step
        recorder.begin(name, step=self._last_step).observe_batch(batch)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Under automatic optimization this comes after the backward pass and before the clipping."""
        t = None if self._methods is None or self._methods.is_manual else self._methods.of(optimizer)
        if t is not None:
            t.measure_grad_norm()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        t = self.transition
        if self.recorder is None or self._methods is None or t is None:
            return
        if not self._methods.is_manual and trainer.accumulate_grad_batches > 1:
            t.skip("accumulating")  # unless a step was asked for
        self.recorder.end()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        loss = trainer.callback_metrics.get("val_loss")
        if self.recorder is not None and loss is not None and not trainer.sanity_checking:
            self.recorder.validation(loss)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Named as Lightning names its files by default."""
        if self.recorder is not None:
            name = f"epoch={trainer.current_epoch}-step={trainer.global_step}"
            self.recorder.checkpoint(name, sampler=self._place.following(trainer))

    def state_dict(self) -> dict[str, Any]:
        """The recorder's, in Lightning's checkpoint."""
        return {} if self.recorder is None else self.recorder.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The recorder is made after this."""
        self._state = state_dict or None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.recorder is not None:
            self.recorder.__exit__(type(exception), exception, exception.__traceback__)
        self._let_go()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._let_go()

    def _run(self, trainer: Any) -> Path:
        if self._directory is not None:
            return Path(self._directory)
        return Path(trainer.log_dir or trainer.default_root_dir) / "spikeview"
