"""The reward of Intuitor (arXiv 2505.19590): the policy's certainty of its own tokens.

Table 1 of the KLCF paper has this reward as a baseline. It does not depend on a judge, but the
method's own rewards are recorded too. So responses are still judged, and a response whose claim
extraction failed is not trained on.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.pipeline import rescore
from workbench.policies.generate import prompt_ids
from workbench.policies.hf import SCORED, sampled_logits
from workbench.training.loading import Trainee
from workbench.types import Event, Feedback, Grade, Response, Reward
from workbench.util.grouping import split_batches

if TYPE_CHECKING:
    from torch import Tensor

SELF_CERTAINTY = "self_certainty"  # name of the reward


def kl_from_uniform(logits_TV: "Tensor") -> "Tensor":
    """Return KL(U ‖ p) = Σ_j 1/V log(1 / (V p_j)) in nats, (T), for the logits of T tokens.

    p is the distribution over V tokens with these logits, and U is the uniform distribution.
    """
    return -logits_TV.log_softmax(-1).mean(-1) - math.log(logits_TV.shape[-1])


def with_self_certainty(grade: Grade, trainee: Trainee, temperature: float) -> Grade:
    """Return a function that grades responses by `grade` and adds the reward `SELF_CERTAINTY`.

    The added reward is the mean of KL(U ‖ p) over a response's tokens (see `kl_from_uniform`). U is
    the uniform distribution, and p the current policy's next-token distribution at `temperature`.
    """
    import torch

    def graded(responses: Sequence[Response]) -> list[Feedback]:
        prompts = prompt_ids(trainee.tokenizer, [response.question for response in responses])
        pairs = [(p, list(r.token_ids)) for p, r in zip(prompts, responses, strict=True)]
        with torch.no_grad():
            values = [
                kl_from_uniform(logits_TV / temperature).mean().item()
                for batch in split_batches(pairs, SCORED)
                for logits_TV in sampled_logits(
                    trainee.model, trainee.tokenizer.pad_token_id, batch
                )
            ]
        return [
            rescore(feedback, {SELF_CERTAINTY: partial(_reward, value)})
            for feedback, value in zip(grade(responses), values, strict=True)
        ]

    return graded


def _reward(value: float, _: Feedback) -> Reward:
    return Reward(value, {}, (Event(SELF_CERTAINTY, value),))
