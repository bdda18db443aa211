"""RLFH (arXiv 2406.12221): on-policy RL from the truth and the informativeness of each claim.

The paper: a judge splits a response into atomic statements, verifies each against retrieved
passages and rates its informativeness. The verdicts become rewards of tokens, and PPO maximises
their sum. Results of Vicuna-7B:

* FactScore before → after training: HotpotQA .569 → .655, SQuADv2 .669 → .683, biographies .347 →
  .474
* FactScore by the position of the rewards: ends of statements .655, ends of sentences .645, end of
  the response .639

Our deviations:

* Claims in the thinking earn no reward.
* A claim whose words are not found in the text is listed in `Reward.unplaced`. Its reward is at the
  end of its sentence, or of the response if the claim has no sentence.
* One call rates the informativeness of all claims, as section 3.1.3 describes.
* An adapter is trained instead of all parameters, with larger learning rates. The critic is a
  linear head on the policy's hidden states.
* GRPO is an alternative to PPO.
* The setting `off_subject` can penalise true claims about another person. The paper's reward barely
  penalises them. It needs the judge of the closed world.
"""
