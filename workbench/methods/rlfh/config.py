"""Settings of RLFH (arXiv 2406.12221), with the paper's defaults."""

import warnings
from dataclasses import dataclass
from math import log1p
from typing import Literal

from workbench.methods.method import Prompts
from workbench.training.grpo_config import GRPO
from workbench.training.ppo import PPO
from workbench.training.settings import KL, Optim, Sampling
from workbench.util.config import setting

# f, the value of each label (table 9)
PAPER_F = {
    "correct": 1.0,
    "hedged_correct": 0.5,
    "vague": -1.0,
    "hedged_wrong": -1.5,
    "wrong": -2.0,
}
# f in the launch script of the released code *(code)*
LAUNCH_SCRIPT_F = {
    "correct": 0.3,
    "hedged_correct": 0.1,
    "vague": -0.8,
    "hedged_wrong": -0.9,
    "wrong": -1.2,
}
PAPER_G = {5: 1.3, 4: 1.2, 3: 1.1, 2: 1.0, 1: -0.1}  # g, by informativeness (table 9)

# Values that are not set here are the defaults of `PPO` and `GRPO`. PPO's defaults are the values
# of the released code.
BY_PPO = PPO(
    # (ours) for a linear head; the code trains a second model as the critic, with 9e-6
    critic_learning_rate=1e-3,
    micro_batch=2,  # (ours) fits one 80 GB GPU, by `workbench plan`
    optim=Optim(learning_rate=1e-5),  # (ours) for the adapter; the code: 5e-7 for all parameters
)
BY_GRPO = GRPO(
    # (ours) subtracts no mean, so that the tokens of a refusal have an advantage of 0
    advantages="rtg",
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=2e-5),  # (ours) for the adapter
    sampling=Sampling(max_new_tokens=1024),
    kl=KL(beta=0.01),
)
PROMPTS = Prompts(system="")  # the question alone: an answer in prose, not in a box


def _value(label: str) -> float | None:
    """Return the setting `f_LABEL` of a label. The default None selects the value of `reward_map`.

    Args:
        label: a label of claims, such as "vague".
    """
    return setting(
        None,
        f"f, the value of a {label.replace('_', ' ')} claim: {PAPER_F[label]:g}; launch script"
        f" {LAUNCH_SCRIPT_F[label]:g}",
        range=(-3, 2, 0.05),
        unset=lambda config: label_values(config)[label],
    )


def _factor(rating: int, claim: str) -> float:
    return setting(PAPER_G[rating], f"g, the factor of {claim}", range=(-1, 2, 0.05))


@dataclass(frozen=True)
class RLFH:
    """Settings of RLFH's reward and of its training.

    The equations in `rlfh.reward.reward` use these symbols:

    * f: value of a claim's label, such as 1 for "correct" (defaults from the paper, table 9)
    * g: factor of a claim's informativeness, such as 1.3 for 5 (defaults from the paper, table 9)
    * α, β: weights of truth and informativeness (defaults from the paper's code)
    * ε: lower bound of the sum of g over a sentence (default from the paper's code)
    """

    mode: Literal["pipeline", "single_pass"] = setting(
        "pipeline", "§3.1: extract, verify and rate in separate calls, or all in one call"
    )
    granularity: Literal["statement", "sentence", "paragraph"] = setting(
        "statement",
        "place of the rewards: ends of claims and sentences, of sentences alone, or of the answer",
    )  # §3.2, table 2
    # (ours)
    spread: bool = setting(
        False, "spread a reward over the whole claim or sentence instead of its last token"
    )
    reward_map: Literal["paper", "launch_script"] = setting(
        "paper",
        "f: the paper's table 9, or the released launch script's; the f_… settings override it",
    )
    f_correct: float | None = _value("correct")
    f_hedged_correct: float | None = _value("hedged_correct")
    f_vague: float | None = _value("vague")
    f_hedged_wrong: float | None = _value("hedged_wrong")
    f_wrong: float | None = _value("wrong")
    g_5: float = _factor(5, "a claim that answers the question")
    g_4: float = _factor(4, "a crucial claim")
    g_3: float = _factor(3, "a relevant claim")
    g_2: float = _factor(2, "a supplementary claim")
    g_1: float = _factor(1, "a repeated or useless claim")
    alpha: float = setting(1.0, "α: weight of the claims' truthfulness", range=(0, 3, 0.05))
    beta: float = setting(1.0, "β: weight of the sentences' informativeness", range=(0, 3, 0.05))
    epsilon: float = setting(
        -0.9, "ε: lower bound of a sentence's Σg in the logarithm; above -1", range=(-0.99, 1, 0.01)
    )  # log(1 - .9) = -2.30
    off_subject: Literal["useless", "wrong"] = setting(
        "useless",
        "a claim about another subject than the question's: rated as useless, or rewarded like a"
        " wrong one",
    )  # (ours), off by default
    annotator: Literal["bench", "local", "self", "recall"] = setting(
        "bench",
        "source of the labels in training: the bench's judge, the local verifier with pages, or the"
        " initial policy, by yes/no questions with a passage (self) or by open questions from"
        " memory (recall)",
        trains=True,
    )  # table 3; the bench's judge still rates the informativeness (ours)
    flips: float = setting(
        0.0,
        "share of the annotator's labels that are inverted, to simulate training with a worse one",
        least=0,
        most=1,
        trains=True,
    )  # (ours) for table 3
    trainer: Literal["ppo", "grpo"] = setting(
        "ppo", "how the policy is trained; the paper: ppo", trains=True
    )
    prompts: Prompts = PROMPTS
    ppo: PPO = BY_PPO
    grpo: GRPO = BY_GRPO


def label_values(config: RLFH) -> dict[str, float]:
    """Return a dict from each label of claims, such as "vague", to its value in the reward.

    This is f of the paper, from the settings `reward_map` and `f_…`.
    """
    table = PAPER_F if config.reward_map == "paper" else LAUNCH_SCRIPT_F
    own = {name: getattr(config, f"f_{name}") for name in table}
    return {name: value if own[name] is None else float(own[name]) for name, value in table.items()}


def factors(config: RLFH) -> dict[int, float]:
    """Return a dict from each informativeness rating, 1 to 5, to its factor in the reward.

    This is g of the paper.
    """
    return {rating: getattr(config, f"g_{rating}") for rating in PAPER_G}


def warn_of_rewarded_mistakes(config: RLFH) -> None:
    """Warn if, by an estimate, adding a vague or wrong claim to a response raises its reward.

    For each label and informativeness, the estimated gain is
    α·f·|g| + max(β·log(1 + max(ε, g)), 0), with the symbols of `RLFH`. The warning names the
    settings with a gain above 0. The default settings cause no warning, with either value of
    `reward_map`.
    """
    # In a sentence with other claims and Σg ≥ 0, the logarithm changes by less (for β ≥ 0).
    # In a sentence of useless claims (g = −.1), Σg is negative. With the paper's table 9, after
    # five useless claims (Σg = −.5) a vague claim raises the reward by −1 + log(1.5/.5) = +.10. A
    # hedged wrong claim does so after eight, a wrong claim after nine. With the launch script's f,
    # the numbers are two, four and six.
    f, g, cases = label_values(config), factors(config), list[str]()
    for name in ("vague", "hedged_wrong", "wrong"):
        gains = {
            f"g_{rating}={weight:g}": config.alpha * f[name] * abs(weight)
            + max(config.beta * log1p(max(config.epsilon, weight)), 0.0)
            for rating, weight in g.items()
        }
        if at := ", ".join(place for place, gain in gains.items() if gain > 0):
            cases.append(f"f_{name}={f[name]:g} (up to {max(gains.values()):+.2g}, at {at})")
    if cases:
        settings = f"{' and '.join(cases)} with alpha={config.alpha:g} and beta={config.beta:g}"
        warnings.warn(
            f"with {settings}, rlfh rewards a vague or wrong claim more than no claim: lower the"
            " named rlfh.f_… settings, or rlfh.beta",
            stacklevel=3,  # the caller of `reward`
        )
