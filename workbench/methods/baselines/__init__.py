r"""The baselines of TruthRL (arXiv 2509.25760, table 1 and appendix): SFT and DPO.

The paper, CRAG with retrieval, truthfulness / hallucination: prompting 5.3 / 43.5, SFT on gold
answers 1.4 / 49.3, RFT −3.7 / 48.8, R-Tuning 15.2 / 33.1, DPO 6.8 / 43.7, iterative DPO in four
rounds 12.9, 16.3, 28.0, 19.0, the ternary reward 37.2 / 19.4.

Our deviations:

* An adapter is trained instead of all parameters.
* The samples that a baseline trains on decide what is out of knowledge, instead of 256 others.
* Gold answers are learnt as a sentence, or in `\boxed{}` if the prompt asks for that.
* The paper does not state the number of samples for DPO's pairs.
* Samples have TruthRL's reward, which no rule here reads.
"""

from workbench.methods.baselines.method import BASELINES

__all__ = ["BASELINES"]
