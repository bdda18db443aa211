"""TruthRL's rewards (arXiv 2509.25760, section 3): a value for the outcome of a response.

The last token of the response gets the whole reward.
"""

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
    """Return the reward function that the config selects.

    * The setting `reward` selects the ternary or the binary reward.
    * With `knowledge=True`, questions that the policy cannot answer are rewarded differently; see
      the function `knowledge`.
    * If the setting `reasoning` is not "none", the quality of the reasoning counts too; see the
      function `reasoning`.
    * With `verifier="string_match"`, answers are compared with gold answers as strings.

    The reward is None if a verdict that it needs failed or is missing.

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
            "conditional": lambda r, rho, outcome: r * rho if outcome == "correct" and r > 0 else r,
        }
        base = reasoning(base, ways[config.reasoning])
    return string_match(base) if config.verifier == "string_match" else base


def binary(correct: float = 1.0, wrong: float = -1.0) -> RewardFn:
    """Return the binary reward function (section 3.2).

    A correct answer gets `correct`. Every other response, also an abstention, gets `wrong`.
    """
    return ternary(correct, wrong, wrong)


def ternary(correct: float = 1.0, abstain: float = 0.0, wrong: float = -1.0) -> RewardFn:
    """Return the ternary reward function (section 3.2).

    A correct answer gets `correct`, an abstention gets `abstain`, and a wrong answer gets `wrong`.
    """
    return _of_outcome({"correct": correct, "uncertain": abstain, "incorrect": wrong})


def _of_outcome(values: Mapping[str, float]) -> RewardFn:
    by_label = {name: float(value) for name, value in values.items()}

    @scored
    def of_outcome(feedback: Feedback, verdicts: Table) -> Reward:
        value = by_label[label(find(verdicts, "outcome", None), by_label)]
        return Reward(value, {"outcome": value}, (Event("outcome", value),))

    return of_outcome


def knowledge(base: RewardFn, other: float) -> RewardFn:
    """Return the knowledge-enhanced variant (section 3.2) of the reward function `base`.

    The variant differs from `base` on questions that are out of the policy's knowledge. There, an
    abstention gets +1. Every other response, even with a correct answer, gets `other` (paper: −1).
    """
    unknown = _of_outcome({"correct": other, "uncertain": 1.0, "incorrect": other})

    @scored
    def by_knowledge(feedback: Feedback, verdicts: Table) -> Reward:
        boundary = label(find(verdicts, "response", "out_of_knowledge"), KNOWLEDGE)
        return unknown(feedback) if boundary == UNKNOWN else base(feedback)

    return by_knowledge


def reasoning(base: RewardFn, combine: Combine) -> RewardFn:
    """Return the reasoning-enhanced variant (section 4.6) of the reward function `base`.

    The reward is None if the "reasoning" verdict failed or is missing.

    Args:
        combine: (reward of `base`, quality ρ of the reasoning, outcome) -> reward. ρ is 1 for good
            and 0 for poor reasoning.
    """
    # Reasoning before an abstention counts like any other, as the paper defines it. The paper's
    # analysis reports a score of 0 instead.

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
    """Return a variant of `base` in which string matching decides if an answer is correct.

    This is the rule-based verifier of table 5. An answer is correct only if it equals a gold answer
    after normalisation (`text.normalise`). The judge's "outcome" verdict only decides whether a
    response abstains.
    """

    def by_string_match(feedback: Feedback) -> Reward:
        response = feedback.response
        answer = final_answer(
            response.text, r"\boxed" in response.question.system, response.prefill
        )
        words = normalise(answer or "")  # "" if there is no answer, or only punctuation
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
