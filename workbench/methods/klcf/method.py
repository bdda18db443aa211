"""Define the method KLCF: the parts of its reward, and its settings on the tiny bench."""

from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.reward import checks, reward
from workbench.methods.klcf.run import input_digests
from workbench.methods.klcf.stages import stages
from workbench.methods.method import AT_ONCE, Method, Training, scaled


def idle(config: KLCF) -> set[str]:
    """Return the paths of settings without effect in this config, such as "prepare.items"."""
    cases = (
        (config.trainer == "dpo", "grpo"),
        (config.trainer != "dpo", "dpo drawn"),
        (not config.models_truth or config.rewarded != "model", "truth_model"),
        (not config.w_general, "general"),
        (not config.trains_general, "general_model"),
        (not config.trains_general and not config.models_truth, "held_out"),
        # a prepared folder already contains the results of these settings
        (
            config.prepare.folder is not None,
            "prepare.told prepare.items prepare.important prepare.copies prepare.drawn",
        ),
    )
    return {name for unused, names in cases if unused for name in names.split()}


def training(config: KLCF) -> Training:
    """Return how the policy is trained: trainer, unused settings, initial policy, models in memory.

    The reward keeps up to two models in memory: the model that computes P(true), and the reward
    model that the run trains for general quality (`general.py`).
    """
    return Training(
        config.trainer,
        idle(config),
        start="base" if config.start == "zero" else None,
        resident_models=int(config.models_truth) + config.trains_general,
    )


PARTS = {
    "check": ("checklist", "F-measure of checklist recall and precision"),
    "truth": ("truthfulness", "mean P(true) of the claims"),
    "general": ("general quality", "a preference model's score"),
    "format": (
        "format",
        "0 with think and answer tags; without tags −1, and no reward for the content",
    ),
    "length": ("length", "0, falling to −1 for an overlong answer"),
    "recall": ("checklist recall", "share of the checklist's facts that the answer states"),
    "precision": (
        "checklist precision",
        "share of stated facts among the checklist's facts that the answer states or contradicts",
    ),
    "consistent": ("facts stated", "number of checklist facts that the answer states"),
    "contradictory": ("facts contradicted", "number of checklist facts that it contradicts"),
    "missing": ("facts missing", "number of checklist facts that it does not mention"),
    "stood_in": (
        "claims by fact verdict",
        "claims without a truthfulness model's score: their fact verdict's P(true) is used",
    ),
}
# *(ours)*, for 1M parameters on two CPU cores, chosen on validation. The tiny policy writes no
# tags; its base writes biographies without a system prompt. Long answers have 40 to 70 tokens.
MODEL = {**AT_ONCE, "learning_rate": 1e-3, "critic_learning_rate": 1e-2}
ANSWER_TOKENS = 96  # most tokens of an answer
TINY = scaled(
    KLCF(),
    form=False,
    l_max=ANSWER_TOKENS,
    l_cache=24,
    prompts={"kinds": "biography", "eval_kinds": "biography", "eval_samples": 1, "system": None},
    prepare={"told": "", "questions": None, "max_new_tokens": ANSWER_TOKENS},
    truth_model={**MODEL, "batch": 16, "epochs": 3.0},
    general_model={**MODEL, "batch": 32, "epochs": 1.0},
    drawn={"max_new_tokens": ANSWER_TOKENS},
    grpo={
        **AT_ONCE,
        "steps": 30,
        "learning_rate": 1e-3,
        "schedule": "linear",
        "prompts_per_step": 16,
        "group_size": 8,
        "max_new_tokens": ANSWER_TOKENS,
        "save_every": 5,
    },
    dpo={**AT_ONCE, "learning_rate": 1e-4, "batch": 32},
)
METHOD = Method(
    "klcf",
    "KLCF",
    KLCF,
    reward,
    checks,
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
    input_digests=input_digests,
    needs_tokens=lambda config: "" if config.l_max is None else "l_max=none",
)
