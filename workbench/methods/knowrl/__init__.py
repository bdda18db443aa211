"""KnowRL (arXiv 2506.19807): rewards for facts in the thinking, and for refusing to answer.

The paper: GRPO with LoRA and the reward R = r_format + r_correct + r_fact. r_fact is the share of
the thinking's atomic facts that retrieved passages support. r_correct is +1 for a refusal.

On SimpleQA, R1-Distill-Qwen-7B gives 78.0 % incorrect answers before training. After training, 57.7
% are incorrect and 40.7 % are refusals. With r_correct = −1 for a refusal, 78.7 % are incorrect and
8.7 % are refusals. So the gain is from abstention: only 1.7 % of the answers are correct. r_format
+ r_fact leaves more errors (80.7 %) than r_format alone (74.0 %).

The paper's objective has one probability ratio per response, and an entropy bonus of unknown
weight. Our default has TRL's ratio per token and no bonus. `grpo.importance_sampling=trajectory`
and `grpo.entropy=WEIGHT` select the paper's objective, which weights a response by its length.

Our deviations:

* A hedged claim counts as supported if it is true.
* `facts="if_wrong"` adds r_fact only if the answer is wrong. This is the rule of the released code,
  which differs from the paper.
* `facts="if_answered"` is ours. It adds r_fact only if the response is not a refusal. The paper
  also rewards trivial true facts before a refusal.
* The cold start trains on the policy's own samples, not on samples of a stronger model. A sample
  must have the right form, a correct answer or a refusal, and no wrong claim.
* The evidence depends on the bench: facts of the closed world, or passages that the judge reads.
"""
