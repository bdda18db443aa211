"""TruthRL's rewards (arXiv 2509.25760, section 3): for the outcome of a response, at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.methods.lookup import Table, find, label, scored
from workbench.methods.truthrl.config import TruthRL
from workbench.types import KNOWLEDGE, OUTCOMES, Event, Feedback, Reward, RewardFn
from workbench.util.config import check_values

# (outcome reward r, reasoning quality ρ of 0 or 1) -> final reward
Combine = Callable[[float, float], float]

REASONING = {"good": 1.0, "poor": 0.0}
UNKNOWN = KNOWLEDGE[1]


def reward(config: TruthRL) -> RewardFn:
    """Return the reward function of a config: ternary or binary, and its enhanced variants.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)
    base = binary(config.correct, config.wrong)
    if config.reward == "ternary":
        base = ternary(config.correct, config.abstain, config.wrong)
    if config.knowledge:
        base = knowledge(base, config.wrong)
    if config.reasoning == "none":
        return base
    # section 4.6
    ways: dict[str, Combine] = {
        "multiplicative": lambda r, rho: r * (1 + rho),
        "additive": lambda r, rho: r + config.reasoning_weight * rho,
        # "where r = +1", read as: where the answer has a positive reward
        "conditional": lambda r, rho: r * rho if r > 0 else r,
    }
    return reasoning(base, ways[config.reasoning])


def binary(correct: float = 1.0, wrong: float = -1.0) -> RewardFn:
    """Return the binary reward (section 3.2): +1 if correct, −1 otherwise, abstentions included."""
    return _of_outcome({"correct": correct, "uncertain": wrong, "incorrect": wrong})


def ternary(correct: float = 1.0, abstain: float = 0.0, wrong: float = -1.0) -> RewardFn:
    """Return the ternary reward (section 3.2): +1 if correct, 0 if uncertain, −1 if incorrect."""
    return _of_outcome({"correct": correct, "uncertain": abstain, "incorrect": wrong})


def _of_outcome(values: Mapping[str, float]) -> RewardFn:
    by_label = {name: float(value) for name, value in values.items()}

    @scored
    def of_outcome(feedback: Feedback, verdicts: Table) -> Reward:
        value = by_label[label(find(verdicts, "outcome", None), by_label)]
        return Reward(value, {"outcome": value}, (Event("outcome", value),))

    return of_outcome


def knowledge(base: RewardFn, other: float) -> RewardFn:
    """Return the knowledge-enhanced variant (section 3.2) of the reward `base`.

    On a question that is out of knowledge, an abstention has +1 and every answer `other` (paper:
    −1), even a correct one. On a known question `base` applies.
    """
    unknown = _of_outcome({"correct": other, "uncertain": 1.0, "incorrect": other})

    @scored
    def by_knowledge(feedback: Feedback, verdicts: Table) -> Reward:
        boundary = label(find(verdicts, "response", "out_of_knowledge"), KNOWLEDGE)
        return unknown(feedback) if boundary == UNKNOWN else base(feedback)

    return by_knowledge


def reasoning(base: RewardFn, combine: Combine) -> RewardFn:
    """Return the reasoning-enhanced variant (section 4.6): `base` combined with the quality ρ of
    the reasoning, 1 if good and 0 if poor.

    The reasoning of an abstention changes nothing, whatever its verdict: table 8 gives uncertain
    responses a reasoning score of 0, and the conditional strategy is for correct outcomes alone. A
    failed verdict on it leaves the response without a reward all the same.
    """

    @scored
    def with_reasoning(feedback: Feedback, verdicts: Table) -> Reward:
        outcome = base(feedback)
        if outcome.value is None:
            return outcome
        # looked up first: a failed verdict also leaves an abstention without a reward
        quality = REASONING[label(find(verdicts, "reasoning", None), REASONING)]
        abstains = label(find(verdicts, "outcome", None), OUTCOMES) == "uncertain"
        change = 0.0 if abstains else combine(outcome.value, quality) - outcome.value
        return Reward(
            outcome.value + change,
            {**outcome.parts, "reasoning": change},
            (*outcome.events, Event("reasoning", change)),
        )

    return with_reasoning
