"""One optimizer as the recorder follows it: its parameters, its steps, and the row they fill."""

from __future__ import annotations

from recorder.channel.channel import Channel

__all__ = ["Channel"]
