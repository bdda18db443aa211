r"""Baselines that train by SFT or DPO: those of the TruthRL paper, and FactTune-FS.

The TruthRL paper (arXiv 2509.25760, table 1 and appendix) reports these values of truthfulness /
hallucination in %, on CRAG with retrieval:

* prompting 5.3 / 43.5
* SFT on gold answers 1.4 / 49.3
* RFT (SFT on selected samples of the policy) −3.7 / 48.8
* R-Tuning 15.2 / 33.1
* DPO 6.8 / 43.7
* TruthRL's ternary reward 37.2 / 19.4

For iterative DPO, it reports truthfulness 12.9, 16.3, 28.0 and 19.0 after rounds 1 to 4.
FactTune-FS (arXiv 2311.08401) is DPO on samples with different shares of supported claims.

Our deviations:

* An adapter is trained instead of all parameters.
* A question is out of the policy's knowledge if none of the samples for training is correct. The
  paper takes 256 separate samples to decide this.
* SFT trains on a gold answer as a sentence, or in `\boxed{}` if the prompt asks for that.
* The number of samples for DPO's pairs is ours, because the paper does not state it.
* The samples of the TruthRL baselines are stored with their ternary reward. Training does not use
  this reward.
"""
