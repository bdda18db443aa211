"""TruthRL's rewards (arXiv 2509.25760, section 3) for a response's outcome, at its last token."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from workbench.methods.lookup import Table, find, label, scored
from workbench.methods.truthrl.config import TruthRL
from workbench.text import final_answer, normalise
from workbench.types import KNOWLEDGE, OUTCOMES, Event, Feedback, Reward, RewardFn
from workbench.util.config import check_values

# (outcome reward r, reasoning quality ρ of 0 or 1, outcome) -> final reward
Combine = Callable[[float, float, str], float]

REASONING = {"good": 1.0, "poor": 0.0}
UNKNOWN = KNOWLEDGE[1]


def reward(config: TruthRL) -> RewardFn:
    """Return the reward function of a config: ternary or binary, and its enhanced variants.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)
    # the enhanced variants wrap this base reward
    base = binary(config.correct, config.wrong)
    if config.reward == "ternary":
        base = ternary(config.correct, config.abstain, config.wrong)
    if config.knowledge:
        base = knowledge(base, config.wrong)
    if config.reasoning != "none":
        # section 4.6
        ways: dict[str, Combine] = {
            "multiplicative": lambda r, rho, _: r * (1 + rho),
            "additive": lambda r, rho, _: r + config.reasoning_weight * rho,
            "conditional": lambda r, rho, outcome: r * rho if outcome == "correct" else r,
        }
        base = reasoning(base, ways[config.reasoning])
    return string_match(base) if config.verifier == "string_match" else base


def binary(correct: float = 1.0, wrong: float = -1.0) -> RewardFn:
    """Return the binary reward (section 3.2): +1 if correct, −1 otherwise, abstentions included."""
    return ternary(correct, wrong, wrong)


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

    On a question that is out of knowledge, an abstention earns +1, and every answer, even if
    correct, earns `other` (paper: −1). On a known question `base` applies.
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

    The reasoning before an abstention counts like any other reasoning. The paper reports a score of
    0 for it in the analysis, but the definition has no such rule. The conditional strategy changes
    only the reward of correct answers. A failed verdict always leaves the response without a
    reward.
    """

    @scored
    def with_reasoning(feedback: Feedback, verdicts: Table) -> Reward:
        outcome = base(feedback)
        if outcome.value is None:
            return outcome
        quality = REASONING[label(find(verdicts, "reasoning", None), REASONING)]
        answered = label(find(verdicts, "outcome", None), OUTCOMES)
        change = combine(outcome.value, quality, answered) - outcome.value
        return Reward(
            outcome.value + change,
            {**outcome.parts, "reasoning": change},
            (*outcome.events, Event("reasoning", change)),
        )

    return with_reasoning


def string_match(base: RewardFn) -> RewardFn:
    """Return `base` with the rule-based verifier of table 5: an answer is correct only if it equals
    a gold answer, normalised as in SQuAD. Whether it abstains is read from the outcome verdict.
    """

    def by_string_match(feedback: Feedback) -> Reward:
        response = feedback.response
        answer = final_answer(
            response.text, r"\boxed" in response.question.system, response.prefill
        )
        words = normalise(answer or "")  # "" also of signs alone, which equal no gold answer
        matches = words != "" and words in map(normalise, response.question.answers)
        label = "correct" if matches else "incorrect"
        verdicts = tuple(
            replace(verdict, label=label, p=None, by="string match")
            if verdict.target == "outcome" and verdict.label in ("correct", "incorrect")
            else verdict
            for verdict in feedback.verdicts
        )
        return base(replace(feedback, verdicts=verdicts))

    return by_string_match
