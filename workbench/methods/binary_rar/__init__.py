"""Binary RAR (arXiv 2510.17733): a reward of 1 if the evidence contradicts no claim, else 0.

The paper trains by GRPO with a KL penalty. On Qwen3-8B, hallucination in long answers falls by 39.3
%. Scores for instruction following, mathematics and code do not change. All responses without
contradictions have the same reward. So a policy gains nothing by making fewer or more generic
claims. An abstention has the reward 1, too.

Our deviations:

* Each claim is compared with passages that are retrieved for it. A response is contradicted if one
  of its claims has the label `wrong` or `hedged_wrong`. The paper's verifier reads the whole
  response in one call. As in the paper, a claim without evidence (`vague`) is not contradicted.
* If a verdict failed, the response has no reward. The released code gives it the reward 0.
* A LoRA adapter is trained. The released code has a trainer for this, too.
"""
