"""The settings of RLFH, with the paper's defaults, and their values at smaller benches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.methods.method import AT_ONCE, Prompts, scaled
from workbench.methods.rlfh.reward import LAUNCH_SCRIPT_F, PAPER_F, rlfh, warn_of_paid_mistakes
from workbench.training.grpo_config import GRPO
from workbench.training.ppo import PPO
from workbench.training.settings import KL, Optim, Sampling
from workbench.types import RewardFn, WorkbenchError
from workbench.util.config import check_values, setting

# The other values of both are their defaults: PPO's are those of the released code.
BY_PPO = PPO(
    critic_learning_rate=1e-3,  # (ours) for a linear head; the code, training a second model: 9e-6
    micro_batch=2,  # (ours) fits one 80 GB GPU, by `workbench plan`
    optim=Optim(learning_rate=1e-5),  # (ours) for the adapter; the code: 5e-7 for all parameters
)
BY_GRPO = GRPO(
    # (ours) what follows a token, against 0: a refusal's tokens stay where they are
    advantages="rtg",
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=2e-5),  # (ours) for the adapter
    sampling=Sampling(max_new_tokens=1024),
    kl=KL(beta=0.01),
)
PROMPTS = Prompts(system="")  # the question alone: an answer in prose, in no box


def _value(label: str, claim: str) -> float | None:
    """The setting for f of a label; None stands for the value of the reward map."""
    paper, script = PAPER_F[label], LAUNCH_SCRIPT_F[label]
    return setting(
        None,
        f"what {claim} is worth: {paper:g}; launch script {script:g}",
        range=(-3, 2, 0.05),
        unset=lambda config: label_values(config)[label],
    )


@dataclass(frozen=True)
class RLFH:
    """The reward's constants. `f_…` and `g_…` are the paper's f and g (table 9); α, β and ε are
    those of its code.
    """

    mode: Literal["pipeline", "single_pass"] = setting(
        "pipeline", "§3.1: extract, verify and rate, or all in one call"
    )
    granularity: Literal["statement", "sentence", "paragraph"] = setting(
        "statement",
        "where claims and sentences are paid: at the ends of claims, of their sentences, or of the"
        " answer",
    )  # §3.2, table 2
    # (ours)
    spread: bool = setting(
        False, "pay over the whole claim or sentence instead of at its last token"
    )
    reward_map: Literal["paper", "launch_script"] = setting(
        "paper",
        "f: the paper's table 9, or the released launch script's; the single values go before it",
    )
    f_correct: float | None = _value("correct", "a correct claim")
    f_hedged_correct: float | None = _value("hedged_correct", "a hedged correct claim")
    f_vague: float | None = _value("vague", "a vague claim")
    f_hedged_wrong: float | None = _value("hedged_wrong", "a hedged wrong claim")
    f_wrong: float | None = _value("wrong", "a wrong claim")
    g_5: float = setting(1.3, "factor of a claim that answers the question", range=(-1, 2, 0.05))
    g_4: float = setting(1.2, "factor of a crucial claim", range=(-1, 2, 0.05))
    g_3: float = setting(1.1, "factor of a relevant claim", range=(-1, 2, 0.05))
    g_2: float = setting(1.0, "factor of a supplementary claim", range=(-1, 2, 0.05))
    g_1: float = setting(-0.1, "factor of a claim that is repeated or useless", range=(-1, 2, 0.05))
    alpha: float = setting(1.0, "α: weight of the truthfulness of the claims", range=(0, 3, 0.05))
    beta: float = setting(
        1.0, "β: weight of the informativeness of the sentences", range=(0, 3, 0.05)
    )
    epsilon: float = setting(
        -0.9, "ε: least Σg of a sentence that the logarithm takes; above -1", range=(-0.99, 1, 0.01)
    )  # log(1 - .9) = -2.30
    # (code, off) 10
    clip: float | None = setting(
        None, "most that one token is paid, either way", range=(0.1, 20, 0.1), above=0
    )
    no_eos: float = setting(
        0.0, "paid by an answer that was cut off before its end token", range=(-3, 0, 0.1)
    )  # (code, off) -1
    min_coverage: float = setting(
        0.5,
        "share of a claim's words that must be found in the answer to pay it there",
        range=(0, 1, 0.05),
    )  # (ours)
    off_subject: Literal["useless", "wrong"] = setting(
        "useless",
        "a claim about another subject than the one asked for: rated as useless, or paid like a"
        " wrong one",
    )  # (ours, off)
    annotator: Literal["bench", "local", "self", "recall"] = setting(
        "bench",
        "whose verdicts on claims are trained on: the bench's, the local verifier's from pages, or"
        " the start policy's from memory, asked yes or no (self) or for the answer (recall)",
        trains=True,
    )  # table 3; informativeness stays the bench's (ours)
    flips: float = setting(
        0.0,
        "share of the annotator's verdicts that are turned around in training, as by a poorer one",
        least=0,
        most=1,
        trains=True,
    )  # (ours) for table 3
    trainer: Literal["ppo", "grpo"] = setting(
        "ppo", "what the policy is trained by; the paper: ppo", trains=True
    )
    prompts: Prompts = PROMPTS
    ppo: PPO = BY_PPO
    grpo: GRPO = BY_GRPO


def label_values(config: RLFH) -> dict[str, float]:
    """f: what each label is worth under `config`."""
    named = PAPER_F if config.reward_map == "paper" else LAUNCH_SCRIPT_F
    own = {name: getattr(config, f"f_{name}") for name in named}
    return {name: value if own[name] is None else float(own[name]) for name, value in named.items()}


def reward(config: RLFH) -> RewardFn:
    """Feedback with "fact" verdicts (five labels and informativeness) -> reward, events at
    claims and sentences.
    """
    check_values(config)
    if config.epsilon <= -1:
        raise WorkbenchError(
            f"rlfh.epsilon is {config.epsilon}: it must be above -1, or the logarithm has no value"
        )
    f, g = (
        label_values(config),
        {rating: getattr(config, f"g_{rating}") for rating in (1, 2, 3, 4, 5)},
    )
    warn_of_paid_mistakes(f, g, alpha=config.alpha, beta=config.beta, epsilon=config.epsilon)
    return rlfh(
        f=f,
        g=g,
        alpha=config.alpha,
        beta=config.beta,
        epsilon=config.epsilon,
        granularity=config.granularity,
        spread=config.spread,
        clip=config.clip,
        no_eos=config.no_eos,
        min_coverage=config.min_coverage,
        off_subject=config.off_subject,
    )


def checks(config: RLFH) -> tuple[str, ...]:
    """In single-pass mode the extraction gives the verdicts as well."""
    return ("fact",) if config.mode == "pipeline" else ("single_pass",)


PARTS = {
    "truth": ("truthfulness", "sum over the claims of α · f(verdict) · |g(informativeness)|"),
    "info": (
        "informativeness",
        "sum over the sentences of β · ln(1 + max(ε, Σ g(informativeness)))",
    ),
    "clip": ("clipping", "what is taken off where more than the bound was paid at one place"),
    "no_eos": ("no end token", "paid by an answer that was cut off before its end token"),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md. Responses are paid up to about 10 in few updates: a critic whose values may
# go .2 from what they were would not get there, and with λ below 1 it is the critic that has to
# carry what a life will cost to its first word.
LONG = {
    "steps": 30,
    "max_new_tokens": 64,
    **AT_ONCE,
    "save_every": 5,
}
TINY = scaled(
    RLFH(),
    prompts={"kinds": "biography", "eval_kinds": "biography"},
    ppo={
        **LONG,
        "learning_rate": 2e-3,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
    },
    grpo={**LONG, "learning_rate": 3e-3, "schedule": "linear", "warmup": 0.0, "beta": 0.0},
)
