"""FoRAG: factuality optimised at two fine grains in web-enhanced long answers (arXiv 2406.13779).

The paper: answers are planned by an outline before they are written, which makes them more coherent and less factual; doubly
fine-grained RLHF (evaluation by holistic answer, sentence or subclaim; reward model by sequence or token) brings factuality
back. WebGPT-en, Llama2-7B, answers wholly factual: .7978 with the outline, .8897 with both; subclaims .8897, sentences .8787,
holistic .8493 with a sequence-level reward model.

Our deviations: until a reward model is trained, the verdicts on claims stand in for it, and the reward says so; only the
`[Answer]` part counts; the paper's normalisation by the reference's own answer subtracts the mean of that answer's segment
rewards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.config import check_values, setting
from workbench.recipes.method import Method
from workbench.reward import forag
from workbench.reward.forag import Aggregate, mean
from workbench.types import RewardFn


@dataclass(frozen=True)
class FoRAG:
    """The reward's settings (section 5.2)."""

    evaluation: Literal["holistic", "sentence", "subclaim"] = setting(
        "subclaim", "what is scored: the whole answer, its sentences, or the claims of each sentence"
    )  # the best row of table 2
    aggregate: Literal["mean", "min", "max"] = setting("mean", "how the claims of a sentence become its factuality")
    judged_by: Literal["fact", "factuality"] = setting(
        "fact", "the check that is asked: of the claims' facts, which stands in, or a reward model of that name"
    )
    baseline: bool | None = setting(
        None, "subtract the mean factuality of the reference's own answer; none: where the row has it; true: required"
    )


def reward(config: FoRAG) -> RewardFn:
    """Feedback with "factuality" verdicts, or "fact" verdicts that stand in, -> reward, events at the ends of sentences."""
    check_values(config)
    aggregates: dict[str, Aggregate] = {"mean": mean, "min": min, "max": max}
    return forag(config.evaluation, aggregates[config.aggregate], config.baseline)


def checks(config: FoRAG) -> tuple[str, ...]:
    """What stands in for the reward model, or the model, as far as the judge at hand has one."""
    return (config.judged_by,)


PARTS = {
    "factuality": ("factuality", "sum over the sentences of how factual they are, 0 to 1 each"),
    "segments": ("sentences scored", "how many sentences of the answer have a factuality"),
    "baseline": ("reference answer", "factuality of the reference's own answer, subtracted from every sentence"),
    "stood_in": (
        "scored by claim verdicts",
        "sentences without a reward model's score: their claims' verdicts are used",
    ),
}
METHOD = Method("forag", "FoRAG", FoRAG, reward, checks, parts=PARTS)
