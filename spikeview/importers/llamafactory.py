"""LLaMA-Factory: `trainer_log.jsonl`, written by a callback of the Hugging Face Trainer."""

from __future__ import annotations

from spikeview.importers import blocks_json, huggingface, tabular
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.json_lines import first_object
from spikeview.importers.source import Source
from spikeview.meaning import Meaning
from spikeview.run import Run

LOG = "trainer_log.jsonl"


def declines(source: Source) -> str | None:
    """None for lines with `current_steps` and `total_steps`, and for a folder with such a log."""
    if source.is_folder:
        return None if source.holds(LOG) else f"no {LOG}"
    found = first_object(source)
    return None if found is not None and {"current_steps", "total_steps"} <= set(found) else "no current_steps"


def read(source: Source, asked: Asked) -> Run:
    """One row a line; the loss is the trainer's own."""
    path = source.holds(LOG) or source.path
    meanings = huggingface.MEANINGS | {"step": Meaning("current_steps")}
    return tabular.run_of(tabular.Log(path, "a LLaMA-Factory log", blocks_json.read(path, asked.tell), meanings), asked)


LLAMA_FACTORY = Importer("LLaMA-Factory trainer_log.jsonl", declines, read)
