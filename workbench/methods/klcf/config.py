"""Settings of KLCF (arXiv 2509.23765), with the paper's defaults, and its prompts.

The prompts are ours, because the paper does not print its prompts. Other values that the paper does
not state are marked *(ours)*.
"""

from dataclasses import dataclass
from typing import Literal

from workbench.methods.method import Prompts
from workbench.training.grpo_config import GRPO
from workbench.training.offline import DPO
from workbench.training.reward_model import RewardModel
from workbench.training.settings import Optim, Passes, Samples, Sampling
from workbench.util.config import setting

# system prompt of the questions in training and evaluation
SYSTEM = (
    "Think between <think> and </think> about what you know. Then write the whole answer, with"
    " all facts that you are sure of, between <answer> and </answer>."
)
# System prompt of the questions that the base model answers before training. A base model does not
# follow instructions, so example answers show the form. The paper's prompt has ten examples.
SHOTS = (
    "Questions and their answers, full of facts and without any opinion.\n\nQuestion: What is the"
    " Moon?\nAnswer: The Moon is the only natural satellite of the Earth. It orbits the Earth at a"
    " mean distance of about 384,400 kilometres. One orbit takes about 27.3 days. The first people"
    " landed on it in 1969.\n\nQuestion: Tell me about Marie Curie.\nAnswer: Marie Curie was a"
    " physicist and chemist. She was born in Warsaw in 1867. She discovered polonium and radium."
    " She won the Nobel Prize in Physics in 1903 and that in Chemistry in 1911.\n\nQuestion: How is"
    " paper made?\nAnswer: Most paper is made from wood. The wood is turned into a pulp of fibres"
    " in water. The pulp is spread on a screen, where the water drains off. The sheet is then"
    " pressed and dried.\n\nAnswer the next question in the same way."
)

# The paper states only the learning rate; all other values are *(ours)*. Micro-batches fit one
# 80 GB GPU, according to `workbench plan`.
BY_GRPO = GRPO(
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=1e-6, schedule="constant", warmup=0.0),
    sampling=Sampling(max_new_tokens=2048),
)
BY_DPO = DPO(passes=Passes(micro_batch=1), optim=Optim(learning_rate=1e-6))
MODELLED = RewardModel(passes=Passes(max_length=4096, micro_batch=1))
PROMPTS = Prompts(system=SYSTEM)
SAMPLES = Samples(sampling=Sampling(max_new_tokens=2048))  # appendix A.1: 8 samples


@dataclass(frozen=True)
class Prepare:
    """Settings for making checklists and labelled claims from samples of the base model."""

    folder: str | None = setting(
        None, "a folder filled by `workbench klcf prepare`; none: the run prepares its own data"
    )
    told: str = setting(
        SHOTS, "system prompt of the base model: example answers, as a base follows no instructions"
    )
    # table 6: the paper's checklists have 10.09 to 11.10 items on average
    items: int = setting(10, "most facts of a checklist", least=1)
    important: int = setting(
        3, "lowest informativeness, 1 to 5, of a fact on a checklist", least=1
    )  # (ours)
    copies: int = setting(
        3, "most copies of a refuted claim in the truthfulness model's training data", least=1
    )  # appendix B.1
    drawn: Samples = Samples()  # (ours)


PREPARED = Prepare()


@dataclass(frozen=True)
class KLCF:
    """Settings of KLCF's reward (section 2.3) and of its training.

    The reward is the weighted mean of three terms (checklist, truthfulness and general quality)
    plus terms for format and length. A term of weight 0 is not computed.
    """

    w_check: float = setting(
        1.0,
        "weight of the checklist's F-measure; weights count relative to their sum",
        range=(0, 2, 0.05),
    )  # (ours: equal weights)
    w_truth: float = setting(
        1.0, "weight of the mean P(true) of the claims", range=(0, 2, 0.05)
    )  # the best F1 of table 2 has .4 for the checklist and truth, .2 for general (docs/papers.md)
    w_general: float = setting(
        0.0,
        "weight of a preference model's score; scoring needs rows with 'general' verdicts",
        range=(0, 2, 0.05),
    )  # (ours); positive in the paper
    b: float = setting(
        1.0, "recall counts b times as much as precision", range=(0.1, 4, 0.1), above=0
    )  # (ours)
    truth: Literal["all", "missing"] = setting(
        "all", "average over all claims, or only over claims missing from the checklist"
    )  # the paper's FActScore: 61.2 with "all", 60.7 with "missing"
    unreadable: Literal["model", "zero"] = setting(
        "model",
        "P(true) of a claim whose form the judge cannot read, such as a fragment: the truthfulness"
        " model's, or zero; needs a judge that marks such claims (closed world or local verifier)",
    )  # (ours)
    abstain: float = setting(
        0.0,
        "truthfulness of an abstention; above 0, abstaining can earn more than guessing",
        range=(0, 1, 0.05),
        least=0,
        most=1,
    )  # (ours)
    form: bool = setting(True, "require think and answer tags; false is the non-thinking setting")
    l_max: int | None = setting(
        2048, "tokens at which the length penalty reaches -1; none: no penalty", range=(8, 4096, 8)
    )  # (ours)
    l_cache: int = setting(
        512, "the penalty begins this many tokens before l_max", range=(1, 1024, 1)
    )  # (ours)
    start: Literal["zero", "sft"] = setting(
        "zero",
        "initial policy: the base model, or the bench's fine-tuned one; --policy names another",
        trains=True,
    )
    base: str | None = setting(
        None,
        "base model whose knowledge is rewarded, a name or folder; none: the bench's, or --policy",
        trains=True,
    )
    rewarded: Literal["model", "confidence", "judge"] = setting(
        "model",
        "source of P(true) in training: model (a truthfulness model, trained first), confidence"
        " (of the base model, calibrated on the same claims) or judge (its verdicts)",
        trains=True,
    )
    held_out: float = setting(
        0.2,
        "share of the questions held out to measure the trained reward models",
        least=0,
        below=1,
        trains=True,
    )
    general: str | None = setting(
        None,
        "preference model, a classifier with one output: a folder or a public name such as"
        " Skywork/Skywork-Reward-V2-Llama-3.2-1B; none: a model of good form is trained on the"
        " base's own answers",
        trains=True,
    )
    trainer: Literal["grpo", "dpo"] = setting(
        "grpo",
        "dpo, a baseline of the paper, prefers the best sample of a question to the worst",
        trains=True,
    )
    prompts: Prompts = PROMPTS
    prepare: Prepare = PREPARED
    truth_model: RewardModel = MODELLED
    general_model: RewardModel = MODELLED
    drawn: Samples = SAMPLES  # for DPO
    grpo: GRPO = BY_GRPO
    dpo: DPO = BY_DPO

    @property
    def trains_general(self) -> bool:
        """Whether a run trains its own reward model for general quality.

        False if the setting `general` names a preference model, or if `w_general` is 0.
        """
        return bool(self.w_general) and self.general is None

    @property
    def models_truth(self) -> bool:
        """Whether a model in memory computes P(true) of claims in training.

        True for a truthfulness model and for the base model's confidence. False if the judge gives
        P(true), or if `w_truth` is 0.
        """
        return bool(self.w_truth) and self.rewarded != "judge"
