"""KnowRL's reward (arXiv 2506.19807): a sum of terms for format, outcome and facts.

The facts are the claims of the thinking.
"""

from statistics import fmean

from workbench.methods.knowrl.config import KnowRL
from workbench.methods.lookup import (
    Table,
    check_not_failed,
    claims,
    find,
    label,
    on_claim,
    scored,
    supported,
    total,
)
from workbench.text import well_formed
from workbench.types import OUTCOMES, Event, Feedback, Reward, RewardFn
from workbench.util.config import check_values

# the setting `facts` -> the outcomes for which facts are rewarded
REWARDED = {
    "always": OUTCOMES,
    "if_wrong": ("incorrect",),
    "if_answered": ("correct", "incorrect"),
    "never": (),
}


def reward(config: KnowRL) -> RewardFn:
    """Return the reward function R = r_format + r_correct + r_fact.

    The last token gets the whole reward. `form`, `correct`, `refusal`, `wrong` and `facts` are
    settings.

    * r_format is +`form` for a response with think and answer tags (`text.well_formed`), else
      −`form`.
    * r_correct is `correct` for a correct answer, `refusal` for a refusal, and `wrong` for a wrong
      answer.
    * r_fact is the share of the thinking's claims that are supported; 0 without claims. A hedged
      claim can be supported too *(ours)*. `facts` selects the outcomes for which r_fact is added,
      such as only wrong answers (`facts="if_wrong"`).

    The reward is None if claims could not be extracted, or if the verdict on the outcome is missing
    or failed. It is also None if a verdict on a claim of the thinking failed or, where r_fact is
    added, is missing.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)
    values = {"correct": config.correct, "uncertain": config.refusal, "incorrect": config.wrong}

    @scored
    def knowrl(feedback: Feedback, verdicts: Table) -> Reward:
        text, prefill = feedback.response.text, feedback.response.prefill
        thought = claims(feedback, lambda claim: claim.section == "think")
        outcome = label(find(verdicts, "outcome", None), values)
        for claim in thought:
            check_not_failed(verdicts, f"claim:{claim.id}", "fact")
        parts = {
            "format": config.form if well_formed(text, prefill) else -config.form,
            "correct": values[outcome],
        }
        if outcome in REWARDED[config.facts]:
            facts = [supported(on_claim(verdicts, claim, "fact")) for claim in thought]
            parts["fact"] = fmean(facts) if facts else 0.0
        events = tuple(Event(name, value) for name, value in parts.items())
        return Reward(total(events), parts, events)

    return knowrl
