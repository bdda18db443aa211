"""Language models as judges: prompt templates, strict parsing of replies, OpenAI-compatible
endpoints and a reply cache.
"""

from workbench.judge.batch import BatchJudge, Totals
from workbench.judge.endpoint import endpoint
from workbench.judge.templates import TASKS, Element, elements, fingerprint, render
from workbench.judge.wire import LABELS, read, read_reply

__all__ = [
    "LABELS",
    "TASKS",
    "BatchJudge",
    "Element",
    "Totals",
    "elements",
    "endpoint",
    "fingerprint",
    "read",
    "read_reply",
    "render",
]
