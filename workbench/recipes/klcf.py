"""KLCF: agree with what the base model knows, without outside knowledge at training time (arXiv 2509.23765).

The paper: a checklist of facts that the base model itself can give, verified once offline, rewards recall and precision; a
truthfulness model, fine-tuned from that same base model, rewards claims that it holds to be true. Qwen2.5-14B base to
KLCF-zero: FActScore 46.8 → 61.2, F1@64 on LongFact .637 → .733. The checklist alone raises recall and costs precision,
truthfulness alone the reverse. A reward takes 57 s without any search, where FActScore takes 198 s and 52 searches.

Our deviations: until a truthfulness model is trained, the "fact" verdicts stand in for it, and the reward says so; the general
reward is off by default, since no preference model is part of this package; formulas that the text does not state are defined
in `workbench.reward.klcf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.config import check_values, setting
from workbench.recipes.method import Method, scaled
from workbench.reward import klcf
from workbench.types import RewardFn, WorkbenchError


@dataclass(frozen=True)
class KLCF:
    """The reward's constants (section 2.3). A weight of 0 takes a term out of use; the others count relative to their sum."""

    w_check: float = setting(
        1.0, "weight of the checklist's F-measure; weights count relative to their sum", range=(0, 2, 0.05)
    )  # (ours: equal)
    w_truth: float = setting(
        1.0, "weight of the mean P(true) of the claims", range=(0, 2, 0.05)
    )  # the best F1 of table 2 has .4, .2 and .4
    w_general: float = setting(
        0.0, "weight of a preference model's score; needs such verdicts", range=(0, 2, 0.05)
    )  # (ours); above 0 there
    b: float = setting(1.0, "recall counts b times as much as precision", range=(0.1, 4, 0.1))  # (ours)
    truth: Literal["all", "missing"] = setting(
        "all", "all claims, or only those that the checklist is silent about"
    )  # FActScore 61.2 and 60.7
    judged_by: Literal["fact", "truth"] = setting(
        "fact", "the check that P(true) is asked of: of the facts, which stands in, or a truthfulness model of that name"
    )
    form: bool = setting(True, "expect think and answer tags; false is the non-thinking setting")
    l_max: int | None = setting(
        2048, "tokens at which the length penalty reaches -1; none for no penalty", range=(8, 4096, 8)
    )  # (ours)
    l_cache: int = setting(512, "tokens before that at which the penalty begins", range=(1, 1024, 1))  # (ours)


def reward(config: KLCF) -> RewardFn:
    """Feedback with "checklist" and "truth" (or "fact") verdicts -> reward, paid at the end of the response."""
    check_values(config)
    weights = (config.w_check, config.w_truth, config.w_general)
    if min(weights) < 0 or not sum(weights):
        raise WorkbenchError(f"klcf's weights are {weights}: none may be below 0, and one must be above")
    if config.b <= 0:
        raise WorkbenchError(f"klcf.b is {config.b}: it must be above 0")
    if config.l_max is not None and not 0 < config.l_cache <= config.l_max:
        raise WorkbenchError(f"klcf.l_cache is {config.l_cache}: it must be above 0 and at most l_max, {config.l_max}")
    return klcf(
        *weights,
        b=config.b,
        truth=config.truth,
        form=config.form,
        l_max=config.l_max,
        l_cache=config.l_cache,
    )


def checks(config: KLCF) -> tuple[str, ...]:
    """The checks of the terms in use."""
    claimed = ("claim_checklist",) if config.truth == "missing" else ()
    truth = (config.judged_by, *claimed) if config.w_truth else ()
    return (*truth, *(("checklist",) if config.w_check else ()), *(("general",) if config.w_general else ()))


PARTS = {
    "check": ("checklist", "F-measure of checklist recall and precision"),
    "truth": ("truthfulness", "mean P(true) of the claims"),
    "general": ("general quality", "a preference model's score"),
    "format": ("format", "0 where the answer has its think and answer tags; −1, and nothing for its content, where it has not"),
    "length": ("length", "0, falling to −1 for an overlong answer"),
    "recall": ("checklist recall", "share of the checklist's facts that the answer states"),
    "precision": ("checklist precision", "of the checklist's facts that it states or contradicts, the share that it states"),
    "consistent": ("facts stated", "of the checklist"),
    "contradictory": ("facts contradicted", "of the checklist"),
    "missing": ("facts missing", "of the checklist"),
    "stood_in": (
        "claims by fact verdict",
        "claims without a truthfulness model's score: their fact verdict's P(true) is used",
    ),
}
# *(ours)*: the tiny policy writes no tags, and its long answers have 40 to 70 tokens.
TINY = scaled(KLCF(), form=False, l_max=96, l_cache=24)
METHOD = Method("klcf", "KLCF", KLCF, reward, checks, parts=PARTS, scales={"tiny": TINY})
