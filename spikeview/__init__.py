"""spikeview: the forensics of training-loss spikes, from a recorded run directory."""

__version__ = "0.1.0"
