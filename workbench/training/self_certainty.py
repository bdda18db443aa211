"""Intuitor's reward (arXiv 2505.19590): the policy's certainty of its next tokens, without a judge.

KLCF's table 1 compares with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.pipeline import rescore
from workbench.policies.generate import prompt_ids, split_batches
from workbench.policies.hf import SCORED, padded
from workbench.training.loading import Trainee
from workbench.types import Event, Feedback, Grade, Response, Reward

if TYPE_CHECKING:
    from torch import Tensor

SELF_CERTAINTY = "self_certainty"  # name of the reward


def kl_from_uniform(logits_TV: Tensor) -> Tensor:
    """Return KL(U ‖ p) = Σ_j 1/V log(1 / (V p_j)) in nats, (T), of the distributions p with these
    logits, where U is the uniform distribution.
    """
    return -logits_TV.log_softmax(-1).mean(-1) - math.log(logits_TV.shape[-1])


def with_self_certainty(grade: Grade, trainee: Trainee, temperature: float) -> Grade:
    """Return a grader that adds the reward `SELF_CERTAINTY` to those of `grade`: the mean of
    KL(U ‖ p) over a response's tokens, where p is the policy's present next-token distribution.
    """

    def graded(responses: Sequence[Response]) -> list[Feedback]:
        values = self_certainties(trainee, responses, temperature)
        return [
            rescore(feedback, {SELF_CERTAINTY: partial(_reward, value)})
            for feedback, value in zip(grade(responses), values, strict=True)
        ]

    return graded


def self_certainties(
    trainee: Trainee, responses: Sequence[Response], temperature: float
) -> list[float]:
    import torch

    model, tokenizer = trainee.model, trainee.tokenizer
    prompts = prompt_ids(tokenizer, [response.question for response in responses])
    pairs = [(p, list(r.token_ids)) for p, r in zip(prompts, responses, strict=True)]
    values: list[float] = []
    for batch in split_batches(pairs, SCORED):
        rows = [prompt + sampled for prompt, sampled in batch]
        ids_BT, mask_BT = padded(rows, tokenizer.pad_token_id, model.device, left=False)
        with torch.no_grad():
            logits_BTV = model(input_ids=ids_BT, attention_mask=mask_BT, use_cache=False).logits
        for logits_TV, (prompt, sampled) in zip(logits_BTV, batch, strict=True):
            # the logits of a column predict the next token
            own_TV = logits_TV[len(prompt) - 1 : len(prompt) + len(sampled) - 1]
            values.append(kl_from_uniform(own_TV.float() / temperature).mean().item())
    return values


def _reward(value: float, _: Feedback) -> Reward:
    return Reward(value, {}, (Event(SELF_CERTAINTY, value),))
