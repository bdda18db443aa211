"""KnowRL: rewards for facts in the thinking, and for refusing to answer (arXiv 2506.19807).

The paper: GRPO with LoRA and the reward R = r_format + r_correct + r_fact. r_fact is the share of
the thinking's atomic facts that retrieved passages support; r_correct is +1 for a refusal.
R1-Distill-Qwen-7B on SimpleQA: incorrect 78.0 → 57.7 %, with 40.7 % refused. With −1 for a refusal:
incorrect 78.7 %, refused 8.7 %. So the gain is from abstention: only 1.7 % of the answers are
correct. r_format + r_fact leaves more errors (80.7 %) than r_format alone (74.0 %).

The paper's objective has the probability ratio of whole responses, and an entropy bonus of unknown
weight. Our default is TRL's ratio per token. `grpo.importance_sampling=trajectory` and
`grpo.entropy=WEIGHT` select the paper's objective. With one update per batch both ratios are 1, and
the paper's objective weights a response by its length.

Our deviations:

* A hedged claim counts as supported if it is true.
* `facts="if_wrong"` is the released code's rule: r_fact only for wrong answers, unlike the paper.
* `facts="if_answered"` is ours: r_fact only if the response answers. The paper also rewards trivial
  true facts before a refusal.
* The cold start trains on the policy's own samples, not on samples of a stronger model. A sample
  must have the right form, a correct answer or a refusal, and no wrong claim.
* The evidence is the text that the bench's judge reads.
"""
