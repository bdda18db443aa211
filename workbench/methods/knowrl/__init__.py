"""KnowRL: rewards for facts in the thinking, and for refusing to answer (arXiv 2506.19807).

The paper: GRPO with LoRA and the reward R = r_format + r_correct + r_fact. r_fact is the share of
the thinking's atomic facts that retrieved passages support; r_correct is +1 for a refusal.
On SimpleQA, R1-Distill-Qwen-7B gives 78.0 % incorrect answers before and 57.7 % after training, and
then refuses 40.7 %. With −1 for a refusal, 78.7 % are incorrect and 8.7 % refused. So the gain is
from abstention: only 1.7 % of the answers are correct. r_format + r_fact leaves more errors
(80.7 %) than r_format alone (74.0 %).

The paper's objective has one probability ratio per response, and an entropy bonus of unknown
weight. Our default has TRL's ratio per token and no bonus. `grpo.importance_sampling=trajectory`
and `grpo.entropy=WEIGHT` select the paper's objective, which weights a response by its length.

Our deviations:

* A hedged claim counts as supported if it is true.
* `facts="if_wrong"` is the released code's rule: r_fact only for wrong answers, unlike the paper.
* `facts="if_answered"` is ours: r_fact only if the response answers. The paper also rewards trivial
  true facts before a refusal.
* The cold start trains on the policy's own samples, not on samples of a stronger model. A sample
  must have the right form, a correct answer or a refusal, and no wrong claim.
* The evidence depends on the bench: facts of the closed world, or passages that its judge reads.
"""
