"""Queues: train many runs from one file one after another, each identified by its settings."""

from workbench.experiments.queue.entries import Entry, read_entries
from workbench.experiments.queue.runs import ROOT, Run, plan_run, queue_runs
from workbench.experiments.queue.training import status_of, train_queue

__all__ = [
    "ROOT",
    "Entry",
    "Run",
    "plan_run",
    "queue_runs",
    "read_entries",
    "status_of",
    "train_queue",
]
