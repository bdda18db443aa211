"""Verify responses and their claims: the third stage of the pipeline.

Each factory takes settings and returns a `Verify`. A batch makes one call of the judge and keeps
the order of its rows. A failure is a failed verdict on its own row.
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
