"""KnowRL: rewards for facts in the thinking, and for refusing to answer (arXiv 2506.19807).

The paper: GRPO with LoRA, R = r_format + r_correct + r_fact, where r_fact is the share of the
thinking's atomic facts that retrieved passages support, and a refusal has +1. R1-Distill-Qwen-7B on
SimpleQA: incorrect 78.0 → 57.7 %, refused 40.7 %; with −1 for a refusal, refused 8.7 % and
incorrect 78.7 %. So the gain is abstention: 1.7 % of the answers are correct. Format and fact alone
leave more errors (80.7 %) than format alone (74.0 %).

The paper's objective has the probability ratio of whole responses, and an entropy bonus of unknown
weight. Our default is TRL's ratio per token; `grpo.importance_sampling=trajectory` and
`grpo.entropy=WEIGHT` select the paper's objective. With one update per batch both ratios are 1, and
the paper's objective weighs a response by its length.

Our deviations:

* A hedged claim is supported if it is true.
* `facts="if_wrong"` is the released code: r_fact only for wrong answers, unlike the paper.
* `facts="if_answered"` is ours: the paper also rewards a true triviality before a refusal.
* The cold start trains on the policy's own samples with the right form, a right answer or a refusal
  and no wrong claim, instead of a stronger model's.
* The evidence is what the bench's judge reads.
"""
