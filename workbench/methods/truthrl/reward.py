"""TruthRL (arXiv 2509.25760, section 3): rewards for the outcome of a response, paid at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.methods.lookup import Table, find, label, scored
from workbench.types import KNOWLEDGE, OUTCOMES, Event, Feedback, Reward, RewardFn

# (outcome reward r, reasoning quality ρ of 0 or 1) -> final reward
Combine = Callable[[float, float], float]

REASONING = {"good": 1.0, "poor": 0.0}
KNOWN, UNKNOWN = KNOWLEDGE


def binary(correct: float = 1.0, wrong: float = -1.0) -> RewardFn:
    """TruthRL's binary reward (arXiv 2509.25760, section 3): +1 if correct, −1 otherwise,
    abstentions included.
    """
    return _of_outcome({"correct": correct, "uncertain": wrong, "incorrect": wrong})


def ternary(correct: float = 1.0, abstain: float = 0.0, wrong: float = -1.0) -> RewardFn:
    """TruthRL's ternary reward (arXiv 2509.25760, section 3): +1 if correct, 0 if uncertain, −1
    if incorrect.
    """
    return _of_outcome({"correct": correct, "uncertain": abstain, "incorrect": wrong})


def knowledge(base: RewardFn, abstain: float = 1.0, other: float = -1.0) -> RewardFn:
    """The knowledge-enhanced variant: what is out of knowledge pays +1 for an abstention,
    whatever a right answer is worth elsewhere, and −1 for all else, even the truth.

    On a question whose "out_of_knowledge" verdict says `known`, `base` pays as it would.
    """
    unknown = _of_outcome({"correct": other, "uncertain": abstain, "incorrect": other})

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        boundary = label(find(verdicts, "response", "out_of_knowledge"), (KNOWN, UNKNOWN))
        return unknown(feedback) if boundary == UNKNOWN else base(feedback)

    return reward


def reasoning(base: RewardFn, combine: Combine) -> RewardFn:
    """The reasoning-enhanced variant (section 4.6): `combine` the base reward with ρ = 1 for
    good reasoning and 0 for poor.

    The reasoning of an abstention earns and costs nothing, whatever its verdict: table 8 gives
    uncertain responses a reasoning score of 0, and the conditional strategy is for correct
    outcomes alone. A failed verdict leaves it unscored like any other.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        paid = base(feedback)
        if paid.value is None:
            return paid
        quality = REASONING[label(find(verdicts, "reasoning", None), REASONING)]
        abstains = label(find(verdicts, "outcome", None), OUTCOMES) == "uncertain"
        change = 0.0 if abstains else combine(paid.value, quality) - paid.value
        return Reward(
            paid.value + change,
            {**paid.parts, "reasoning": change},
            (*paid.events, Event("reasoning", change)),
        )

    return reward


def multiplicative(outcome: float, quality: float) -> float:
    """r · (1 + ρ)"""
    return outcome * (1 + quality)


def additive(weight: float = 0.5) -> Combine:
    """r + λ·ρ with λ = `weight`"""
    return lambda outcome, quality: outcome + weight * quality


def conditional(outcome: float, quality: float) -> float:
    """r · ρ where r = +1, else r; read as: where the answer is rewarded at all."""
    return outcome * quality if outcome > 0 else outcome


def _of_outcome(values: Mapping[str, float]) -> RewardFn:
    """Pay by the label of the outcome, at the end of the response."""
    paid = {name: float(value) for name, value in values.items()}

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        value = paid[label(find(verdicts, "outcome", None), paid)]
        return Reward(value, {"outcome": value}, (Event("outcome", value),))

    return reward
