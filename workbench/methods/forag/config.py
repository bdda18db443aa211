"""Settings of FoRAG (arXiv 2406.13779): those of the paper, and other ones for the tiny bench.

The settings for the tiny bench are *(ours)*, for 1M parameters on two CPU cores. Some were chosen
with one seed on the validation split (see `benchmarks/README.md`):

* learning rates and batches of the reward model, PPO and the baselines
* β of PPO, the weight of the KL penalty

GRPO's settings were not tuned.
"""

from dataclasses import dataclass
from typing import Literal

from workbench.methods.forag.cold_start import ColdStart
from workbench.methods.method import AT_ONCE, Prompts, scaled
from workbench.training.grpo_config import GRPO
from workbench.training.offline import SFT
from workbench.training.ppo import PPO
from workbench.training.reward_model import RewardModel
from workbench.training.settings import KL, Optim, Passes, Samples, Sampling
from workbench.types import TWO_FACETS
from workbench.util.config import setting
from workbench.world.schema import OUTLINE

Evaluation = Literal["holistic", "sentence", "subclaim"]

# question and passages without an instruction: the cold start teaches the form
PROMPTS = Prompts(system="")
# section 6.1: 5 epochs, cosine. The learning rate is ours, for an adapter; the paper's is 1e-5.
COLD = SFT(Passes(epochs=5, batch=16, micro_batch=2), Optim(learning_rate=1e-4))
# The paper does not state these values. Values that differ from RLFH's code are *(ours)*.
BY_PPO = PPO(
    critic_learning_rate=1e-3,
    micro_batch=2,
    optim=Optim(learning_rate=1e-5),
    kl=KL(beta=0.01, kl="k1"),  # in section 5.2 the reward has the log-ratio, which is "k1"
)
BY_GRPO = GRPO(
    advantages="process",
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=2e-5),
    sampling=Sampling(max_new_tokens=1024),
    kl=KL(beta=0.01),
)
TUNED = SFT(Passes(batch=16, micro_batch=2), Optim(learning_rate=1e-4))
COLD_START, SAMPLES = ColdStart(), Samples(samples=4)
MODELLED = RewardModel(passes=Passes(max_length=4096, micro_batch=1))


@dataclass(frozen=True)
class FoRAG:
    """Settings of FoRAG's reward (section 5.2) and of its training."""

    evaluation: Literal["holistic", "sentence", "subclaim"] = setting(
        "subclaim",
        "what is scored: the whole answer, its sentences, or the claims of each sentence",
    )  # the best row of table 5
    aggregate: Literal["mean", "min", "max"] = setting(
        "mean", "how the labels of a sentence's claims become the sentence's factuality"
    )
    baseline: bool | None = setting(
        None,
        "subtract the mean factuality of the reference model's answers; none: if the row has it,"
        " and in training with PPO; true: always; false: never",
    )
    repeats: Literal["paid", "once"] = setting(
        "paid", "paid: reward a repeated sentence again, as in the paper; once: ignore it"
    )
    rewarded: Literal["model", "judge"] = setting(
        "model",
        "source of the reward in training: a reward model trained on the judge's verdicts, or the"
        " verdicts themselves",
        trains=True,
    )
    trainer: Literal["ppo", "grpo", "mle_filter", "unlikelihood"] = setting(
        "ppo",
        "how the policy is trained; the paper: ppo, and the last two as baselines (section 6.3)",
        trains=True,
    )
    held_out: float = setting(
        0.2,
        "share of the questions held out to measure the reward model, about other people if"
        " possible",
        least=0,
        below=1,
        trains=True,
    )
    # (ours)
    references: int = setting(
        4,
        "reference answers sampled per question; PPO subtracts their mean factuality",
        least=1,
        trains=True,
    )
    unlearn: float = setting(
        1.0,
        "weight of a non-factual answer with trainer=unlikelihood; factual answers have weight 1",
        above=0,
        most=1,
        trains=True,
    )
    prompts: Prompts = PROMPTS
    cold: ColdStart = COLD_START
    sft: SFT = COLD
    drawn: Samples = SAMPLES  # sampled from the policy after its cold start
    reward_model: RewardModel = MODELLED
    ppo: PPO = BY_PPO
    grpo: GRPO = BY_GRPO
    tuned: SFT = TUNED

    @property
    def by_rl(self) -> bool:
        return self.trainer in ("ppo", "grpo")

    @property
    def compares(self) -> bool:
        """Whether PPO subtracts a baseline from the factuality of each segment of an answer.

        A segment is a sentence or the whole answer. The baseline is the mean factuality of the
        reference model's answers to the question.
        """
        return self.trainer == "ppo" and self.baseline is not False

    @property
    def fractional(self) -> bool:
        """Whether a reward model is trained to predict the share of supported claims in a segment.

        If False, the target of a segment is 0 or 1.
        """
        return self.evaluation == "subclaim" and self.aggregate == "mean"

    @property
    def model_loss(self) -> Literal["log", "mse"]:
        """The loss of the reward model: "mse" (squared error) or "log" (cross-entropy).

        It is the setting `reward_model.loss`. By default, it is "mse" if `fractional`, else "log"
        (table 2).
        """
        return self.reward_model.loss or ("mse" if self.fractional else "log")


ANSWER_TOKENS = 96  # *(ours)* tokens: planned answers have up to 75, plain ones fewer than 64
SHORT = {"steps": 25, "max_new_tokens": ANSWER_TOKENS, **AT_ONCE, "save_every": 5}
TINY = scaled(
    FoRAG(),
    prompts={"kinds": TWO_FACETS, "eval_kinds": TWO_FACETS, "eval_samples": 1},
    cold={"told": OUTLINE, "cold_samples": 4, "cold_questions": 200},
    sft={"learning_rate": 1e-3, "batch": 64, **AT_ONCE, "epochs": 3.0},
    drawn={"max_new_tokens": ANSWER_TOKENS},
    # Most samples are not factual, but have the right form. With weight 1 the policy would unlearn
    # the form.
    unlearn=0.01,
    reward_model={
        "learning_rate": 3e-3,
        "critic_learning_rate": 1e-2,
        "batch": 16,
        **AT_ONCE,
        "epochs": 3.0,
    },
    ppo={
        **SHORT,
        "prompts_per_step": 64,
        "learning_rate": 1e-3,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
        "beta": 0.05,
    },
    grpo={
        **SHORT,
        "prompts_per_step": 8,
        "learning_rate": 4e-4,
        "schedule": "linear",
        "warmup": 0.0,
        "beta": 0.0,
    },
    tuned={"learning_rate": 3e-3, "batch": 16, **AT_ONCE, "epochs": 2.0},
)
