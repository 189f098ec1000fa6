"""What is needed to feed a batch again: taken before the step runs, written off the training thread, never pickled."""

from __future__ import annotations

from recorder.capture.captures import Captures, NoCaptures
from recorder.capture.contents import states_of
from recorder.capture.directory import Capture, read_capture
from recorder.capture.generators import Generators
from recorder.capture.policy import CapturePolicy
from recorder.captured import captures_of, rank_of, row_of

__all__ = [
    "Capture",
    "CapturePolicy",
    "Captures",
    "Generators",
    "NoCaptures",
    "captures_of",
    "rank_of",
    "read_capture",
    "row_of",
    "states_of",
]
