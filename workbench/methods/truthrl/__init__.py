"""TruthRL: a ternary outcome reward, with which a policy learns to abstain where it does not know
the answer (arXiv 2509.25760).

The paper: GRPO with +1 for a right answer, 0 for "I don't know" and −1 for a wrong answer lowers
hallucination and raises truthfulness (accuracy − hallucination). The binary reward gives −1 for all
but a right answer, so that abstention disappears. Average over four data sets, binary to ternary:
hallucination 47.7 → 18.8 %, truthfulness 4.5 → 25.6 %.

Our deviations:

* A LoRA adapter is trained instead of all parameters, with a learning rate of 2e-5 instead of 1e-6:
  its second matrix starts at zero, so that 1e-6 would barely change the initial policy.
* Rules find the outcome (abstention first, then the gold answers) instead of a judge.
* The group size, which the paper does not state, is 8.
* Only the questions that the training will use are probed.
* The knowledge- and reasoning-enhanced rewards are off by default: the paper finds the plain
  ternary reward best.
"""
