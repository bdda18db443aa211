"""RLFH: on-policy reinforcement learning from the truth and the helpfulness of every claim
(arXiv 2406.12221).

The paper: an AI judge splits a response into atomic statements, verifies each against retrieved
passages and rates how informative it is; the verdicts are traced back to tokens and PPO
maximises their sum. FactScore of Vicuna-7B on HotpotQA .569 → .655, on SQuADv2 .669 → .683, on
biographies .347 → .474; paying at statements (.655) does better than at sentences (.645) or at
the end of the paragraph (.639).

Our deviations: claims in the thinking are not paid; a claim that cannot be found in the text is
listed and paid at its sentence's end, else at the response's end; informativeness is rated in
one call for all claims, as section 3.1.3 has it. An adapter is trained instead of all
parameters, with larger learning rates; the critic is a linear head on the policy's hidden
states. GRPO in PPO's place is ours; so is `off_subject`, which closes the hack that the paper's
reward invites.
"""

from workbench.methods.rlfh.config import RLFH
from workbench.methods.rlfh.reward import rlfh
from workbench.methods.rlfh.stages import METHOD

__all__ = ["METHOD", "RLFH", "rlfh"]
