"""Binary RAR: a reward of 1 for a response that contradicts no retrieved passage, else 0 (arXiv
2510.17733).

The paper: GRPO with a KL penalty. On Qwen3-8B, long-form hallucination falls by 39.3 %, while
scores for instruction following, mathematics and code do not change. The reward is for the response
as a whole, so a response without contradictions does not earn more with fewer or more generic
claims. An abstention has the reward 1, too.

Our deviations:

* Each claim is verified against its own passages. A response is contradicted if one of its claims
  has the label `wrong` or `hedged_wrong`. The paper's verifier reads the whole response in one
  call. A claim without evidence (`vague`) is not contradicted, as in the paper.
* A failed verdict leaves the response without a reward; the released code gives it 0.
* A LoRA adapter is trained. The released code has a trainer for this, too.
"""
