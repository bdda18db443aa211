"""Runs: what a run's folder holds, and which of its checkpoints is complete."""
