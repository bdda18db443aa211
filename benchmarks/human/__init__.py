"""The parts of `benchmarks/human_labels.py`: one module for each thing that people have
labelled.
"""
