"""KnowRL's reward (arXiv 2506.19807): the format, the final answer, and the share of supported
facts in the thinking.
"""

import re
from math import exp, fsum

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
from workbench.text import is_abstention, thinking, well_formed
from workbench.types import OUTCOMES, Event, Feedback, Reward, RewardFn
from workbench.util.config import check_values

# the setting `facts` -> the outcomes for which facts are rewarded
REWARDED = {
    "always": OUTCOMES,
    "if_wrong": ("incorrect",),
    "if_answered": ("correct", "incorrect"),
    "never": (),
}
ENOUGH = 10  # claims from which FActScore (arXiv 2305.14251) has no length penalty


def reward(config: KnowRL) -> RewardFn:
    """Return the reward function R = r_format + r_correct + r_fact, at the end of the response.

    * r_format is ±`form`: see `text.well_formed`.
    * r_correct is `correct`, `refusal` or `wrong`. With `answer_tag` a response without text in a
      closed `<answer>` after the thinking has `wrong`, even a bare refusal *(code)*.
    * r_fact is the share of the thinking's claims that are supported, hedged or not *(ours)*; 0 if
      there are none, and with `no_abstaining` if the thinking only abstains *(code)*. `facts`
      limits r_fact to some outcomes. `length_penalty` multiplies it by exp(1 − 10/M) for M ≤ 10
      claims, as FActScore does *(code)*.

    A failed verdict on a claim of the thinking leaves the response without a reward, even if
    `facts` does not reward that claim.

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
        # a failed check is never a reward, even if `facts` does not use its claim
        for claim in thought:
            check_not_failed(verdicts, f"claim:{claim.id}", "fact")
        tagged = not config.answer_tag or _has_answer(prefill + text)
        parts = {
            "format": config.form if well_formed(text, prefill) else -config.form,
            "correct": values[outcome] if tagged else config.wrong,
        }
        if outcome in REWARDED[config.facts]:
            facts = [supported(on_claim(verdicts, claim, "fact")) for claim in thought]
            share = fsum(facts) / len(facts) if facts else 0.0
            if config.length_penalty and 0 < len(facts) <= ENOUGH:
                share *= exp(1 - ENOUGH / len(facts))
            if config.no_abstaining and is_abstention(thinking(text, prefill)):
                share = 0.0
            parts["fact"] = share
        events = tuple(Event(name, value) for name, value in parts.items())
        return Reward(total(events), parts, events)

    return knowrl


def _has_answer(text: str) -> bool:
    """Whether an answer element after the thinking contains text."""
    # the thinking may quote the tags
    element = re.search(r"<answer>(.*?)</answer>", text.rpartition("</think>")[2], re.S)
    return element is not None and bool(element[1].strip())
