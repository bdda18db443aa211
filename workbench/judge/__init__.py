"""Judges: from prompts to replies. Templates and strict reading, OpenAI-compatible endpoints,
a cache on disk.
"""

from workbench.judge.batch import BatchJudge, Totals, estimate_tokens
from workbench.judge.endpoint import endpoint
from workbench.judge.templates import TASKS, Element, elements, fingerprint, render
from workbench.judge.wire import LABELS, read

__all__ = [
    "LABELS",
    "TASKS",
    "BatchJudge",
    "Element",
    "Totals",
    "elements",
    "endpoint",
    "estimate_tokens",
    "fingerprint",
    "read",
    "render",
]
