"""Queues: train many runs from one file one after another, each identified by its settings."""

from workbench.experiments.queue.entries import Entry, read_entries
from workbench.experiments.queue.runs import ROOT, Run, queue_runs, run_of
from workbench.experiments.queue.training import status_of, train_queue

__all__ = [
    "ROOT",
    "Entry",
    "Run",
    "queue_runs",
    "read_entries",
    "run_of",
    "status_of",
    "train_queue",
]
