"""RLFH: on-policy reinforcement learning from the truth and the informativeness of each claim
(arXiv 2406.12221).

The paper: a judge splits a response into atomic statements, verifies each against retrieved
passages and rates its informativeness. The verdicts are traced back to tokens, and PPO maximises
their sum. FactScore of Vicuna-7B: HotpotQA .569 → .655, SQuADv2 .669 → .683, biographies .347 →
.474. Rewards at statements (.655) do better than at sentences (.645) or at the end of the response
(.639).

Our deviations:

* Claims in the thinking earn no reward.
* A claim that is not found in the text is listed as unplaced. Its reward is at the end of its
  sentence, or of the response if it has none.
* One call rates the informativeness of all claims, as section 3.1.3 describes.
* An adapter is trained instead of all parameters, with larger learning rates. The critic is a
  linear head on the policy's hidden states.
* GRPO is an alternative to PPO.
* `off_subject` closes a loophole of the paper's reward, which hardly penalises true claims about
  another person.
"""
