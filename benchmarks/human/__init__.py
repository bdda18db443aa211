"""The parts of `benchmarks/human_labels.py`, one module for each kind of human label."""
