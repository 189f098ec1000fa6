"""SpikeviewCallback for Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from recorder.flight import FlightRecorder
from recorder.integrations.following import Following
from recorder.integrations.huggingface.methods import TrainerMethods
from recorder.integrations.huggingface.places import Place
from recorder.integrations.huggingface.watching import watch
from recorder.integrations.late import warn_late
from recorder.integrations.replacing import replaced

_CONFIG = (
    "per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "optim", "learning_rate",
    "lr_scheduler_type", "warmup_steps", "weight_decay", "num_train_epochs", "max_steps", "bf16", "fp16", "seed",
)  # fmt: skip
_SHARE = (
    "the model divides each micro-batch's loss by the items of the whole accumulated batch (num_items_in_batch): the "
    "loss of a row is its share of the step's loss, and the shares of a step add up to it"
)


class SpikeviewCallback(Following, TrainerCallback):  # type: ignore[misc]  # the library has no types here
    """Records each call of `trainer.train()` as one segment of a run.

    `directory` is `spikeview` within the Trainer's output directory where none is given. `batch_id` names a batch from
    the inputs that the Trainer gives to `training_step`; without it a batch is `epoch:index`. `settings` are those of
    `FlightRecorder`; `resume=True` is implied where the Trainer resumes from a checkpoint.
    """

    def __init__(
        self,
        directory: str | PathLike[str] | None = None,
        *,
        batch_id: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.directory = directory
        self._name_batch = batch_id
        self._settings = settings
        self._trainer: Trainer | None = None
        self._methods = TrainerMethods(self, self._begin)
        self._place = Place()
        self._last_step = -1
        self._offset = 0
        self._resumed_from: str | None = None
        self._is_late = False
        watch(Trainer, SpikeviewCallback)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Make the recorder, with everything prepared and loaded; raises what `FlightRecorder` raises."""
        trainer = self._trainer
        if trainer is None:
            raise RuntimeError("SpikeviewCallback records Trainer.train(), and this loop is not run by it")
        self._let_go()  # an earlier attempt: auto_find_batch_size begins again
        recorded = self._last_step >= 0
        optimizer = kwargs["optimizer"]
        settings = {"config": {name: getattr(args, name, None) for name in _CONFIG}, **self._settings}
        settings.setdefault("resume", recorded or state.global_step > 0)
        if recorded:
            settings["resume"] = True
        self.recorder = FlightRecorder(
            self._run(args, state),
            kwargs["model"],
            optimizer,
            scaler=getattr(optimizer, "scaler", None),
            scheduler=kwargs["lr_scheduler"],
            max_norm=args.max_grad_norm or None,
            **settings,
        )
        # A training that begins anew in the same run goes on counting where the last one ended.
        self._offset = self._last_step + 1 if recorded and state.global_step == 0 else 0
        if self._offset:
            self.recorder.note(f"train() began anew: step counts on from {self._offset}, and the Trainer's from 0")
        self._resumed_from = f"checkpoint-{state.global_step}" if state.global_step else None
        if self._resumed_from is not None:
            self.recorder.return_to(self._resumed_from)
        self._place = Place()
        for owner, name in (
            (trainer, "training_step"),
            (trainer, "compute_loss"),
            (trainer.accelerator, "clip_grad_norm_"),
        ):
            self._replaced.enter_context(replaced(owner, name, getattr(self._methods, name)))

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._place.begin_epoch(args, state, kwargs.get("train_dataloader"))

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """A callback that was added to a training that runs has seen nothing of how it began."""
        if self.recorder is None and not self._is_late:
            self._is_late = True
            warn_late("train()")

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._end()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._end()

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        loss = (kwargs.get("metrics") or {}).get("eval_loss")
        if self.recorder is not None and loss is not None:
            self.recorder.validation(loss)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.recorder is not None:
            self.recorder.checkpoint(f"checkpoint-{state.global_step}", sampler=self._place.after_checkpoint())

    @contextmanager
    def within(self, trainer: Trainer) -> Iterator[None]:
        """While `trainer.train()` runs."""
        self._trainer = trainer
        try:
            yield
        except BaseException as error:
            if self.recorder is not None:
                self.recorder.__exit__(type(error), error, error.__traceback__)
            raise
        finally:
            self._let_go()
            self._trainer = None

    def _run(self, args: TrainingArguments, state: TrainerState) -> Path:
        directory = Path(args.output_dir, "spikeview") if self.directory is None else Path(self.directory)
        return directory / str(state.trial_name) if state.trial_name else directory

    def _begin(self, inputs: Any) -> None:
        recorder, trainer = self.recorder, self._trainer
        if recorder is None or trainer is None:
            return
        if self._resumed_from is not None:
            # Now the random state is back, too. Where an epoch begins, its loader has drawn from it already.
            unmeasured = () if self._place.index else ("rng",)
            recorder.resumed(self._resumed_from, sampler=str(self._place), unmeasured=unmeasured)
            self._resumed_from = None
        name: Any = str(self._place)
        if self._name_batch is not None:
            with recorder.guard:
                name = self._name_batch(inputs)
        self._place.index += 1
        self._last_step = self._offset + trainer.state.global_step
        t = recorder.begin(name, step=self._last_step, accumulating=not trainer.accelerator.sync_gradients)
        t.observe_batch(inputs)
        if trainer.args.gradient_accumulation_steps > 1 and trainer.model_accepts_loss_kwargs:
            recorder.note_once(_SHARE)

    def _end(self) -> None:
        if self.recorder is not None:
            self.recorder.end()
