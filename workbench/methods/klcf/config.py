"""The settings of KLCF, with the paper's defaults, and their values at smaller benches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from workbench.methods.klcf.prepare import Prepare
from workbench.methods.klcf.reward import klcf
from workbench.methods.method import AT_ONCE, Prompts, Training, scaled
from workbench.training.grpo_config import GRPO
from workbench.training.offline import DPO
from workbench.training.reward_model import RewardModel
from workbench.training.settings import Optim, Passes, Samples, Sampling
from workbench.types import RewardFn, WorkbenchError
from workbench.util.config import check_values, setting

PROMPTS = Prompts(
    system=(
        "Think between <think> and </think> about what you know. Then write the whole answer, with"
        " all facts that you are sure of, between <answer> and </answer>."
    )
)
# The paper states the learning rate alone; the rest is *(ours)*. Micro-batches fit one 80 GB GPU,
# by `workbench plan`.
BY_GRPO = GRPO(
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=1e-6, schedule="constant", warmup=0.0),
    sampling=Sampling(max_new_tokens=2048),
)
BY_DPO = DPO(passes=Passes(micro_batch=1), optim=Optim(learning_rate=1e-6))
MODELLED = RewardModel(passes=Passes(max_length=4096, micro_batch=1))
PREPARED = Prepare()
SAMPLES = Samples(sampling=Sampling(max_new_tokens=2048))  # appendix A.1: 8 samples


@dataclass(frozen=True)
class KLCF:
    """The reward's constants (section 2.3). A weight of 0 takes a term out of use; the others
    count relative to their sum.
    """

    w_check: float = setting(
        1.0,
        "weight of the checklist's F-measure; weights count relative to their sum",
        range=(0, 2, 0.05),
    )  # (ours: equal)
    w_truth: float = setting(
        1.0, "weight of the mean P(true) of the claims", range=(0, 2, 0.05)
    )  # the best F1 of table 2 has .4, .2 and .4
    w_general: float = setting(
        0.0,
        "weight of a preference model's score; in scoring it needs such verdicts",
        range=(0, 2, 0.05),
    )  # (ours); above 0 there
    # (ours)
    b: float = setting(
        1.0, "recall counts b times as much as precision", range=(0.1, 4, 0.1), above=0
    )
    truth: Literal["all", "missing"] = setting(
        "all", "all claims, or only those that the checklist is silent about"
    )  # FActScore 61.2 and 60.7
    abstain: float = setting(
        0.0,
        "what truthfulness pays an abstention; above 0, to abstain can pay more than to guess",
        range=(0, 1, 0.05),
        least=0,
        most=1,
    )  # (ours)
    judged_by: Literal["fact", "truth"] = setting(
        "fact",
        "the check that P(true) is asked of: of the facts, which stands in, or a truthfulness model"
        " of that name",
    )
    form: bool = setting(True, "expect think and answer tags; false is the non-thinking setting")
    l_max: int | None = setting(
        2048,
        "tokens at which the length penalty reaches -1; none for no penalty",
        range=(8, 4096, 8),
    )  # (ours)
    # (ours)
    l_cache: int = setting(
        512, "tokens before that at which the penalty begins", range=(1, 1024, 1)
    )
    start: Literal["zero", "sft"] = setting(
        "zero",
        "what the policy starts as: the base itself, or the bench's tuned one; --policy names"
        " another",
        trains=True,
    )
    base: str | None = setting(
        None,
        "the model whose knowledge counts: a name or folder; none: the bench's base, or what"
        " --policy names",
        trains=True,
    )
    rewarded: Literal["model", "confidence", "judge"] = setting(
        "model",
        "what training pays for truth: a truthfulness model, trained before; the base's own"
        " confidence, calibrated on the same claims; or the judge's verdicts",
        trains=True,
    )
    held_out: float = setting(
        0.2,
        "share of the questions that measure the models that are trained to judge",
        least=0,
        below=1,
        trains=True,
    )
    general: str | None = setting(
        None,
        "the preference model, a classifier with one output: a folder or a public name, as"
        " Skywork/Skywork-Reward-V2-Llama-3.2-1B; none: one of good form is trained of the base's"
        " own answers",
        trains=True,
    )
    # (ours)
    general_scale: float = setting(
        1.0, "what its output is divided by before the sigmoid", above=0, trains=True
    )
    trainer: Literal["grpo", "dpo"] = setting(
        "grpo",
        "what the policy is trained by; dpo, a baseline of the paper, prefers the best of some"
        " answers to the worst",
        trains=True,
    )
    prompts: Prompts = PROMPTS
    prepare: Prepare = PREPARED
    truth_model: RewardModel = MODELLED
    general_model: RewardModel = MODELLED
    drawn: Samples = SAMPLES  # of DPO: the best of a question over the worst
    grpo: GRPO = BY_GRPO
    dpo: DPO = BY_DPO


def reward(config: KLCF) -> RewardFn:
    """Feedback with "checklist" and "truth" (or "fact") verdicts -> reward, paid at the end of
    the response.
    """
    check_values(config)
    weights = (config.w_check, config.w_truth, config.w_general)
    if min(weights) < 0 or not sum(weights):
        raise WorkbenchError(
            f"klcf's weights are {weights}: none may be below 0, and one must be above"
        )
    if config.abstain and not config.w_truth:
        raise WorkbenchError(
            f"klcf.abstain is {config.abstain}, and klcf.w_truth 0 pays no truthfulness: leave"
            " it out"
        )
    if config.l_max is not None and not 0 < config.l_cache <= config.l_max:
        raise WorkbenchError(
            f"klcf.l_cache is {config.l_cache}: it must be above 0 and at most l_max,"
            f" {config.l_max}"
        )
    return klcf(
        *weights,
        b=config.b,
        truth=config.truth,
        abstain=config.abstain,
        form=config.form,
        l_max=config.l_max,
        l_cache=config.l_cache,
    )


def checks(config: KLCF) -> tuple[str, ...]:
    """The checks of the terms in use."""
    claimed = ("claim_checklist",) if config.truth == "missing" else ()
    truth = (config.judged_by, *claimed) if config.w_truth else ()
    return (
        *truth,
        *(("checklist",) if config.w_check else ()),
        *(("general",) if config.w_general else ()),
    )


def trains_general(config: Any) -> bool:
    """Whether a run makes its own model of good form."""
    return bool(config.w_general) and config.general is None


def idle(config: KLCF) -> set[str]:
    """What the other settings leave unused."""
    left = {"grpo"} if config.trainer == "dpo" else {"dpo", "drawn"}
    if not config.w_truth or config.rewarded != "model":
        left |= {"truth_model"}
    if not config.w_general:
        left |= {"general"}
    if not trains_general(config):
        left |= {"general_model"}
    if not config.w_general or config.general is None:
        left |= {"general_scale"}
    if not trains_general(config) and (not config.w_truth or config.rewarded == "judge"):
        left |= {"held_out"}
    if config.prepare.folder is not None:
        kept = [f"prepare.{name}" for name in ("told", "items", "important", "copies", "drawn")]
        left |= set(kept)
    return left


def training(config: KLCF) -> Training:
    """In memory are a truthfulness model, or the base for its confidence, and a model of good
    form, the run's own or a named one."""
    pays_truth = bool(config.w_truth) and config.rewarded != "judge"
    return Training(
        config.trainer,
        idle(config),
        start="base" if config.start == "zero" else None,
        resident_models=int(pays_truth) + trains_general(config),
    )


PARTS = {
    "check": ("checklist", "F-measure of checklist recall and precision"),
    "truth": ("truthfulness", "mean P(true) of the claims"),
    "general": ("general quality", "a preference model's score"),
    "format": (
        "format",
        (
            "0 where the answer has its think and answer tags; −1, and nothing for its content,"
            " where it has not"
        ),
    ),
    "length": ("length", "0, falling to −1 for an overlong answer"),
    "recall": ("checklist recall", "share of the checklist's facts that the answer states"),
    "precision": (
        "checklist precision",
        "of the checklist's facts that it states or contradicts, the share that it states",
    ),
    "consistent": ("facts stated", "of the checklist"),
    "contradictory": ("facts contradicted", "of the checklist"),
    "missing": ("facts missing", "of the checklist"),
    "stood_in": (
        "claims by fact verdict",
        "claims without a truthfulness model's score: their fact verdict's P(true) is used",
    ),
}
# *(ours)*, for 1M parameters on two CPU cores, chosen on validation. The tiny policy writes no
# tags; its base writes lives where it is asked for them and told nothing. Its long answers have 40
# to 70 tokens.
MODEL = {**AT_ONCE, "learning_rate": 1e-3, "critic_learning_rate": 1e-2}
LONGEST = 96
TINY = scaled(
    KLCF(),
    form=False,
    l_max=LONGEST,
    l_cache=24,
    prompts={"kinds": "biography", "eval_kinds": "biography", "eval_samples": 1, "system": None},
    prepare={"told": "", "questions": None, "max_new_tokens": LONGEST},
    truth_model={**MODEL, "batch": 16, "epochs": 3.0},
    general_model={**MODEL, "batch": 32, "epochs": 1.0},
    drawn={"max_new_tokens": LONGEST},
    grpo={
        **AT_ONCE,
        "steps": 30,
        "learning_rate": 1e-3,
        "schedule": "linear",
        "prompts_per_step": 16,
        "group_size": 8,
        "max_new_tokens": LONGEST,
        "save_every": 5,
    },
    dpo={**AT_ONCE, "learning_rate": 1e-4, "batch": 32},
)
