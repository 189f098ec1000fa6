"""Robust baselines, observations and incidents: numpy in, numpy out."""
