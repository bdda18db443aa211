"""Check responses and their claims, and return verdicts: the third stage of the pipeline.

Each function, such as `facts(judge)`, returns a check. A check is a function from a batch of
(response, claims) pairs to one `Checked` per pair, in the same order. It sends all prompts of the
batch to the judge in one call. If the check of one response fails, only the verdicts of this
response have an error.
"""

from workbench.verdicts.judged import checklist, claim_checklist, facts, judged_outcome, reasoning
from workbench.verdicts.outcome import outcome

__all__ = [
    "checklist",
    "claim_checklist",
    "facts",
    "judged_outcome",
    "outcome",
    "reasoning",
]
