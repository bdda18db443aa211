"""Responses and their claims to verdicts: what was checked, and what was found.

Every factory takes its knobs and returns a `Verify`. All calls of a batch go out in one, order
is kept, and what fails is a failed verdict on its own row: never a label, never a number.
"""

from workbench.verify.checklist import checklist, claim_checklist
from workbench.verify.facts import facts
from workbench.verify.outcome import judged_outcome, outcome
from workbench.verify.reasoning import reasoning

__all__ = [
    "checklist",
    "claim_checklist",
    "facts",
    "judged_outcome",
    "outcome",
    "reasoning",
]
