"""KLCF: agree with what the base model knows, without outside knowledge at training time (arXiv
2509.23765).

The paper: a checklist of facts that the base model itself can give, verified once offline,
rewards recall and precision; a truthfulness model, fine-tuned from that same base model, rewards
claims that it holds to be true. Qwen2.5-14B base to KLCF-zero: FActScore 46.8 → 61.2, F1@64 on
LongFact .637 → .733. The checklist alone raises recall and costs precision, truthfulness alone
the reverse. A reward takes 57 s without any search, where FActScore takes 198 s and 52 searches.

Training begins with checklists and labelled claims, made of samples of the base model
(`workbench klcf prepare`), and goes on with a truthfulness model that is tuned from that base.
GRPO on FActScore, a baseline, is `w_check=0 rewarded=judge`.

Our deviations: in scoring, where there is no truthfulness model, the "fact" verdicts stand in
for it, and the reward says so; the general reward is off by default, and where it is paid and no
preference model is named, the run makes one of good form from the base's own answers
(`workbench.methods.klcf.general`); formulas that the text does not state are defined in
`reward.py`. The judge at hand extracts claims and reads checklists, in the place of
two fine-tuned models; one fact in other words is found by the same reading of checklists.
Adapters are trained instead of all parameters, and the truthfulness model has a scalar head
instead of the probability of a word. That the base's own confidence may be paid in its place
(`rewarded=confidence`) is ours.
"""

from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.reward import klcf
from workbench.methods.klcf.stages import METHOD

__all__ = ["KLCF", "METHOD", "klcf"]
