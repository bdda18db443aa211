"""Binary RAR's reward (arXiv 2510.17733, section 3): 1 if no claim is contradicted, else 0."""

from workbench.methods.binary_rar.config import BinaryRAR
from workbench.methods.lookup import P_TRUE, Table, claims, label, on_claim, scored
from workbench.types import REFUTED, Event, Feedback, Reward, RewardFn
from workbench.util.config import check_values


def reward(config: BinaryRAR) -> RewardFn:
    """Return the reward function: 1 if the evidence contradicts no claim of the answer, else 0.

    * The last token gets the whole reward. Claims in the thinking do not count.
    * A response without claims, such as a refusal, has the reward 1.
    * A truncated response has the reward 0 *(code)*. With the setting `truncated=True`, it is
      rewarded like a complete response.
    * If a verdict on a claim failed or is missing, the reward is None.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)

    @scored
    def binary_rar(feedback: Feedback, verdicts: Table) -> Reward:
        answer = claims(feedback, lambda claim: claim.section != "think")
        # all verdicts are read, so that a failed verdict is found even if a claim is refuted
        labels = [label(on_claim(verdicts, claim, "fact"), P_TRUE) for claim in answer]
        refuted = any(one in REFUTED for one in labels)
        # a cut-off response may have stopped before its first wrong claim
        cut_off = feedback.response.finish == "length" and not config.truncated
        value = float(not refuted and not cut_off)
        return Reward(value, {"consistent": value}, (Event("consistent", value),))

    return binary_rar
