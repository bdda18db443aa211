"""Responses and their claims to verdicts.

Every factory takes its settings and returns a `Verify`. All calls of a batch go out in one, the
order is kept, and a failure is a failed verdict on its own row: never a label, never a number.
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
