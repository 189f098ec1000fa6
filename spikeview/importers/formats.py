"""IMPORTERS: what can be opened, each in a file of its own. The first that does not decline reads."""

from __future__ import annotations

from spikeview.importers.bundle import BUNDLE
from spikeview.importers.deepspeed import DEEPSPEED
from spikeview.importers.delimited import CSV
from spikeview.importers.fairseq import FAIRSEQ
from spikeview.importers.huggingface import HUGGING_FACE
from spikeview.importers.huggingface_printed import PRINTED
from spikeview.importers.importer import Importer
from spikeview.importers.json_lines import JSON_LINES
from spikeview.importers.lightning import LIGHTNING
from spikeview.importers.llamafactory import LLAMA_FACTORY
from spikeview.importers.llmc import LLM_C
from spikeview.importers.megatron import MEGATRON
from spikeview.importers.modded_nanogpt import MODDED_NANOGPT
from spikeview.importers.nanogpt import NANOGPT
from spikeview.importers.recorded import RUN_DIRECTORY
from spikeview.importers.tensorboard import TENSORBOARD
from spikeview.importers.wandb_export import WANDB_EXPORT
from spikeview.importers.wandb_run import WANDB_RUN

# A folder or a file may hold lines of several: what tells more of a run comes first.
IMPORTERS: tuple[Importer, ...] = (
    RUN_DIRECTORY,
    BUNDLE,
    HUGGING_FACE,
    LLAMA_FACTORY,
    LIGHTNING,
    WANDB_RUN,
    TENSORBOARD,
    WANDB_EXPORT,
    MEGATRON,
    FAIRSEQ,
    NANOGPT,
    MODDED_NANOGPT,
    LLM_C,
    PRINTED,
    DEEPSPEED,
    JSON_LINES,
    CSV,
)
