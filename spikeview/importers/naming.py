"""Which column of a log is which column of a run: guessed from its name, or told by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from recorder.schema import COLUMNS, USER_PREFIX
from spikeview.format import shown
from spikeview.importers.errors import RunError

# Names as people write them, without case and with every separator as one underscore; the first that is there is taken.
NAMES: dict[str, tuple[str, ...]] = {
    "step": ("global_step", "train_global_step", "trainer_global_step", "step", "current_steps", "num_updates", "steps",
             "iteration", "iter", "iterations", "n_iter", "iter_num", "it", "update", "updates", "train_step",
             "optimizer_step", "current_step", "batches_seen"),
    "loss": ("loss", "train_loss", "training_loss", "train_loss_step", "loss_step", "loss_train", "loss_training",
             "lm_loss", "train_lm_loss", "train_step_loss", "step_loss", "batch_loss", "train_batch_loss",
             "train_loss_batch", "train_total_loss", "total_loss", "loss_total", "losses_total", "train_ce_loss",
             "ce_loss", "nll_loss"),
    "grad_norm": ("grad_norm", "train_grad_norm", "gradient_norm", "gnorm", "train_gnorm", "global_grad_norm",
                  "grad_norm_pre_clip", "grad_l2_pre_clip", "grad_norm_before_clip", "total_grad_norm",
                  "grad_norm_total", "gradnorm", "train_gradient_norm", "grads_norm", "total_norm",
                  "grad_2_0_norm_total", "grad_l2"),
    "lr": ("lr", "learning_rate", "train_lr", "train_learning_rate", "last_lr", "current_lr", "lr_0", "lr_step"),
    "loss_scale": ("loss_scale", "train_loss_scale", "scaler_scale", "grad_scale", "amp_scale", "loss_scaler", "scale"),
    "max_norm": ("max_norm", "max_grad_norm", "clip_value", "grad_clip"),
    "clip_coef": ("clip_coef", "clip_coefficient", "clip_factor"),
    "param_norm": ("param_norm", "params_norm", "weight_norm", "train_param_norm"),
    **{name: (name,) for name in ("update_norm", "update_ratio", "update_cosine", "executed", "attempted", "moved",
                                  "skip_reason", "batch_id", "loss_max", "input_absmax", "time_ns")},
}  # fmt: skip
STARTS: dict[str, tuple[str, ...]] = {"lr": ("lr_", "learning_rate_")}
HELD_OUT = re.compile(r"(^|_)(val|valid|validation|eval|evaluation|test|dev)(_|$)")
SKIPPED = ("skipped", "step_skipped", "is_skipped")
SPLITS = ("split", "mode", "phase", "stage", "subset", "partition")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def plain_name(name: str) -> str:
    """A name as NAMES has it: `Train/Loss` is `train_loss`."""
    return _SEPARATORS.sub("_", name.lower()).strip("_")


def held_out(name: str) -> bool:
    """Whether a name says that its values come from validation or a test."""
    return HELD_OUT.search(plain_name(name)) is not None


def mapping(names: Sequence[str], asked: Mapping[str, str]) -> dict[str, str]:
    """From columns of a run to names in the log. Raises RunError where what was asked for is in neither."""
    plain = {name: plain_name(name) for name in names if not held_out(name)}
    found: dict[str, str] = {}
    for column, wanted in NAMES.items():
        best = _first(plain, wanted) or _starting(plain, STARTS.get(column, ()))
        if best is not None:
            found[column] = best
    if "loss" not in found and (loss := _any_loss(plain)) is not None:
        found["loss"] = loss
    return {column: name for column, name in found.items() if name not in asked.values()} | _checked(names, asked)


def user_name(name: str) -> str:
    """What a further column of a log is called in a run."""
    return USER_PREFIX + name.strip()


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names for a sentence, the first few of them."""
    every = [shown(name, 60) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def parse_map(pairs: Iterable[str]) -> dict[str, str]:
    """`loss=train/loss` as people type it. Raises RunError for what is no such pair, or no column of a run."""
    asked = {}
    for pair in pairs:
        column, equals, name = pair.partition("=")
        if not (column and equals and name):
            raise RunError(f"--map {pair}: is no COLUMN=NAME; write for example --map loss=train/loss")
        if column not in COLUMNS:
            raise RunError(f"--map {pair}: a run has no column {column}; it has {listed(NAMES, len(NAMES))}")
        asked[column] = name
    return asked


def _checked(names: Sequence[str], asked: Mapping[str, str]) -> dict[str, str]:
    for column, name in asked.items():
        if name not in names:
            raise RunError(f"--map {column}={name}: the log has no {shown(name)}; it has {listed(names)}")
    return dict(asked)


def _first(plain: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    by_plain = {text: name for name, text in reversed(list(plain.items()))}
    return next((by_plain[text] for text in wanted if text in by_plain), None)


def _starting(plain: Mapping[str, str], starts: tuple[str, ...]) -> str | None:
    return next((name for name, text in plain.items() if text.startswith(starts) and starts), None)


def _any_loss(plain: Mapping[str, str]) -> str | None:
    """The only name that ends as a loss does, where there is but one: several may be parts of one."""
    ends = [name for name, text in plain.items() if re.search(r"(^|_)loss(_step)?$", text)]
    return ends[0] if len(ends) == 1 else None
