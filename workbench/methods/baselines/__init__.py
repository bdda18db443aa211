r"""The baselines of TruthRL (arXiv 2509.25760, table 1 and appendix): SFT and DPO.

The paper, CRAG with retrieval, truthfulness / hallucination: prompting 5.3 / 43.5, SFT on gold
answers 1.4 / 49.3, RFT −3.7 / 48.8, R-Tuning 15.2 / 33.1, DPO 6.8 / 43.7, iterative DPO in four
rounds 12.9, 16.3, 28.0, 19.0, the ternary reward 37.2 / 19.4.

Our deviations:

* An adapter is trained instead of all parameters.
* A question is out of knowledge if no sample that the baseline trains on is correct. The paper
  takes 256 separate samples to decide this.
* Gold answers are learnt as a sentence, or in `\boxed{}` if the prompt asks for that.
* The paper does not state the number of samples for DPO's pairs.
* Samples are stored with TruthRL's reward, which these baselines do not use.
"""
