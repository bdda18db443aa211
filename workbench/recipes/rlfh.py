"""RLFH: on-policy reinforcement learning from the truth and the helpfulness of every claim (arXiv 2406.12221).

The paper: an AI judge splits a response into atomic statements, verifies each against retrieved passages and rates how
informative it is; the verdicts are traced back to tokens and PPO maximises their sum. FactScore of Vicuna-7B on HotpotQA .569 →
.655, on SQuADv2 .669 → .683, on biographies .347 → .474; paying at statements (.655) does better than at sentences (.645) or
at the end of the paragraph (.639).

Our deviations: claims in the thinking are not paid; a claim that cannot be found in the text is listed and paid at its
sentence's end, else at the response's end; informativeness is rated in one call for all claims, as section 3.1.3 has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.recipes import assemble
from workbench.types import Grade, RewardFn, WorkbenchError

if TYPE_CHECKING:
    from workbench.bench import Bench
    from workbench.checks import Checks

METHOD = "rlfh"
CHECKS = ("fact",)


@dataclass(frozen=True)
class RLFH:
    """The reward's constants. `f_…` and `g_…` are the paper's f and g (table 9)."""

    mode: Literal["pipeline", "single_pass"] = "pipeline"  # §3.1: extract, verify, rate; or all in one call
    granularity: Literal["statement", "sentence", "paragraph"] = "statement"  # §3.2; where the events are paid
    spread: bool = False  # (ours) pay over the whole claim, sentence or response instead of at its last character
    reward_map: Literal["paper", "launch_script"] = "paper"  # f of table 9, or of the code's launch script; `f_…` go before it
    f_correct: float | None = None  # 1; launch script .3
    f_hedged_correct: float | None = None  # .5; .1
    f_vague: float | None = None  # -1; -.8
    f_hedged_wrong: float | None = None  # -1.5; -.9
    f_wrong: float | None = None  # -2; -1.2
    g_5: float = 1.3  # the statement answers the question
    g_4: float = 1.2  # crucial
    g_3: float = 1.1  # relevant
    g_2: float = 1.0  # supplementary
    g_1: float = -0.1  # repeated or useless
    alpha: float = 1.0  # (code)
    beta: float = 1.0  # (code)
    epsilon: float = -0.9  # (code) least Σg of a sentence: log(1 - .9) = -2.30
    clip: float | None = None  # (code, off) 10: bound of what one token is paid
    no_eos: float = 0.0  # (code, off) -1: paid by a response cut off before its end token
    min_coverage: float = 0.5  # (ours) a claim found to a lesser share is unplaced


def label_values(config: RLFH) -> dict[str, float]:
    """f: what each label is worth under `config`."""
    from workbench.reward.rlfh import LAUNCH_SCRIPT_F, PAPER_F

    named = PAPER_F if config.reward_map == "paper" else LAUNCH_SCRIPT_F
    own = {name: getattr(config, f"f_{name}") for name in named}
    return {name: value if own[name] is None else float(own[name]) for name, value in named.items()}


def reward(config: RLFH) -> RewardFn:
    """Feedback with "fact" verdicts (five labels and informativeness) -> reward, events at claims and sentences."""
    from workbench.config import check_values
    from workbench.reward import rlfh
    from workbench.reward.rlfh import warn_of_paid_mistakes

    check_values(config)
    if config.epsilon <= -1:
        raise WorkbenchError(f"rlfh.epsilon is {config.epsilon}: it must be above -1, or the logarithm has no value")
    if config.clip is not None and config.clip <= 0:
        raise WorkbenchError(f"rlfh.clip is {config.clip}: it must be above 0, or none")
    f, g = label_values(config), {rating: getattr(config, f"g_{rating}") for rating in (1, 2, 3, 4, 5)}
    warn_of_paid_mistakes(f, g, config.alpha, config.beta, config.epsilon)
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
    )


def checks(config: RLFH) -> tuple[str, ...]:
    """In single-pass mode the extraction gives the verdicts as well."""
    return CHECKS if config.mode == "pipeline" else ("single_pass",)


def grader(config: RLFH, bench: Bench | Checks) -> Grade:
    """Responses -> feedback with verdicts on the claims outside the thinking, and the reward under "rlfh"."""
    return assemble(bench, {METHOD: reward(config)}, checks(config), lambda claim: claim.section != "think")
