"""Verify responses and their claims: the third stage of the pipeline.

Each factory takes settings and returns a `Verify`, a function from a batch of responses and claims
to their verdicts, in the same order. All prompts of a batch go to the judge in one call. If a check
fails for a response, only this response gets a failed verdict.
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
