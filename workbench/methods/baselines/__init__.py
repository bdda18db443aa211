r"""Baselines that train by SFT or DPO: FactTune-FS (arXiv 2311.08401), and the baselines of the
TruthRL paper (arXiv 2509.25760, table 1 and appendix).

The TruthRL paper reports truthfulness / hallucination in %, on CRAG with retrieval:

* prompting 5.3 / 43.5
* SFT on gold answers 1.4 / 49.3, RFT −3.7 / 48.8, R-Tuning 15.2 / 33.1, DPO 6.8 / 43.7
* TruthRL's ternary reward 37.2 / 19.4
* iterative DPO, only truthfulness, after rounds 1 to 4: 12.9, 16.3, 28.0, 19.0

Our deviations:

* An adapter is trained instead of all parameters.
* A question is out of the policy's knowledge if the baseline's samples include no correct answer.
  The paper takes 256 separate samples to decide this.
* SFT trains on a gold answer as a sentence, or in `\boxed{}` if the prompt asks for that.
* The number of samples for DPO's pairs is ours, because the paper does not state it.
* The TruthRL baselines store the ternary reward of each sample, but do not train on it.
"""
