"""TruthRL: a ternary outcome reward teaches a policy to abstain where it does not know (arXiv
2509.25760).

The paper: with GRPO, paying +1 for a right answer, 0 for "I don't know" and −1 for a wrong
answer lowers hallucination and raises truthfulness (accuracy − hallucination) against the binary
reward, which pays −1 for everything that is not right and so trains abstention away. Average
over four data sets, binary to ternary: hallucination 47.7 → 18.8 %, truthfulness 4.5 → 25.6 %.

Our deviations: a LoRA adapter instead of all parameters, and with it a learning rate of 2e-5
instead of 1e-6, at which an adapter, whose second matrix starts at zero, would hardly leave the
starting policy; the outcome is found by rules (abstention first, then the gold answers) instead
of a judge; the group size, which the paper does not state, is 8; of the training questions those
are probed that training will ask. The knowledge- and reasoning-enhanced rewards are off by
default, as the paper finds the plain ternary one best.
"""

from workbench.methods.truthrl.config import TruthRL
from workbench.methods.truthrl.reward import binary, ternary
from workbench.methods.truthrl.stages import METHOD

__all__ = ["METHOD", "TruthRL", "binary", "ternary"]
