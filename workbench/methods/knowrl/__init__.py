"""KnowRL: facts rewarded inside the thinking, and a bonus for refusing (arXiv 2506.19807).

The paper: with GRPO and LoRA, R = r_format + r_correct + r_fact, where r_fact is the share of
the reasoning's atomic facts that retrieved passages support and a refusal earns +1.
R1-Distill-Qwen-7B on SimpleQA: incorrect 78.0 → 57.7 %, refused
40.7 %; with a refusal at -1 instead, refused 8.7 and incorrect 78.7 %. So what is gained is
abstention: 1.7 % are correct. Format and fact alone leave more errors (80.7 %) than format alone
(74.0 %).

The paper's objective has the ratio of whole trajectories, and an entropy bonus, of what weight
it does not say. Ours is TRL's, by token; theirs is `grpo.importance_sampling=trajectory` with
`grpo.entropy=WEIGHT`. At one update a batch both ratios are 1, and theirs differs in that a
response weighs by its length.

Our deviations: a hedged claim counts as supported when it is true. The released code pays r_fact
only where the answer is wrong, unlike the paper: that is `facts="if_wrong"`.
`facts="if_answered"` is ours: the paper pays a true trivium before a refusal, whatever was
asked. The cold start learns from the policy's own samples that have the form, a right answer or
a refusal and no wrong claim, instead of a stronger model's; the evidence is what the bench's
judge looks at.
"""

from workbench.methods.knowrl.config import KnowRL
from workbench.methods.knowrl.reward import knowrl
from workbench.methods.knowrl.stages import METHOD

__all__ = ["METHOD", "KnowRL", "knowrl"]
