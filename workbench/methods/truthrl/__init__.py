"""TruthRL (arXiv 2509.25760): a ternary reward that teaches a policy to abstain if unsure.

The paper trains by GRPO with +1 for a correct answer, 0 for "I don't know", and −1 for a wrong
answer. This lowers hallucination and raises truthfulness (accuracy − hallucination). A binary
reward gives −1 to every response without a correct answer, so abstention disappears. Average over
four data sets, binary → ternary reward: hallucination 47.7 → 18.8 %, truthfulness 4.5 → 25.6 %.

Our deviations:

* A LoRA adapter is trained instead of all parameters, with a learning rate of 2e-5 instead of 1e-6.
  The adapter's second matrix starts at zero, so that 1e-6 would barely change the policy.
* Rules determine the outcome instead of a judge: first abstention, then a comparison with the gold
  answers.
* The group size is 8; the paper does not state it.
* The probe finds questions that the policy cannot answer. It samples only the questions that the
  training will use.
* The knowledge- and reasoning-enhanced rewards are off by default, because the paper finds the
  plain ternary reward best.
"""
