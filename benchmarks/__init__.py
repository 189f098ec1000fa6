"""Measurements, as ratios within one run. Run them as modules from the repository's root."""
