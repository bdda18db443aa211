"""Ask language models to judge claims and answers.

The package has the prompt templates, the strict parsing of replies, the client of
OpenAI-compatible servers and a cache of replies.
"""

from workbench.judge.batch import BatchJudge
from workbench.judge.endpoint import endpoint
from workbench.judge.templates import TASKS, Element, elements, fingerprint, render
from workbench.judge.wire import LABELS, read, read_reply

__all__ = [
    "LABELS",
    "TASKS",
    "BatchJudge",
    "Element",
    "elements",
    "endpoint",
    "fingerprint",
    "read",
    "read_reply",
    "render",
]
