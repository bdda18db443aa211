"""Many runs from one file: each trained once, one after another, and found again by what it is."""

from workbench.queue.entries import Entry, read_entries
from workbench.queue.runs import ROOT, Run, queue_runs, run_of
from workbench.queue.status import status_of
from workbench.queue.training import train_queue

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
