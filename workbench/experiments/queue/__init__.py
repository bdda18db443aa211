"""Queues: train the runs that a file lists, one after another.

A hash of its settings identifies a run and names its folder.
"""

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
