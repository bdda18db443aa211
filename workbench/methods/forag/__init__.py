"""FoRAG: factuality optimised at two fine grains in web-enhanced long answers (arXiv 2406.13779).

The paper: answers are planned by an outline before they are written, which makes them more
coherent and less factual; doubly fine-grained RLHF (evaluation by holistic answer, sentence or
subclaim; reward model by sequence or token) brings factuality back. WebGPT-en, Llama2-7B,
answers wholly factual: .7978 with the outline, .8897 with both; subclaims .8897, sentences
.8787, holistic .8493 with a sequence-level reward model; unlikelihood .8419, filtered MLE .7831.

Our deviations: only the `[Answer]` part counts; the paper's normalisation by the reference's own
answer subtracts the mean of that answer's segment values, and the reference's answers are
sampled as those that are paid, without beams. Where no reward model has judged, the verdicts on
claims stand in for it, and the reward says so. The outline is learnt from the policy's own
samples of the form, drawn where it is told to plan and learnt without being told; with
`cold.writer=judge`, as in the paper, from a stronger model's; for comparison there are answers
without an outline. An adapter is trained instead of all parameters. GRPO in PPO's place is ours,
and so is `repeats=once`: the paper's sum pays a sentence as often as it is said.
"""

from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import forag
from workbench.methods.forag.stages import METHOD

__all__ = ["METHOD", "FoRAG", "forag"]
