"""Batch ids without effort: which samples a batch was made of, and the batch made again from its id."""

from recorder.data.identified import Identified, identified
from recorder.data.remade import batch
from recorder.sample_ids import SampleIds

__all__ = ["Identified", "SampleIds", "batch", "identified"]
