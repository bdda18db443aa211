"""Verdicts to rewards: pure arithmetic, no model calls.

A factory takes a method's constants and returns its `RewardFn`. A verdict that is missing or failed gives a reward of
None with the reason, never a number.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.types import Event, Failure, Feedback, Reward, RewardFn


def binary(correct: float = 1.0, wrong: float = -1.0) -> RewardFn:
    """TruthRL's binary reward (arXiv 2509.25760, section 3): +1 if correct, −1 otherwise, abstentions included."""
    return _of_outcome({"correct": correct, "uncertain": wrong, "incorrect": wrong})


def ternary(correct: float = 1.0, abstain: float = 0.0, wrong: float = -1.0) -> RewardFn:
    """TruthRL's ternary reward (arXiv 2509.25760, section 3): +1 if correct, 0 if uncertain, −1 if incorrect."""
    return _of_outcome({"correct": correct, "uncertain": abstain, "incorrect": wrong})


def _of_outcome(values: Mapping[str, float]) -> RewardFn:
    """Pay by the label of the outcome, at the end of the response."""
    paid = {label: float(value) for label, value in values.items()}

    def reward(feedback: Feedback) -> Reward:
        label = _label(feedback, "outcome", paid)
        if isinstance(label, Failure):
            return Reward(None, error=label)
        return Reward(paid[label], {"outcome": paid[label]}, (Event("outcome", paid[label]),))

    return reward


def _label(feedback: Feedback, target: str, declared: Mapping[str, float]) -> str | Failure:
    """The label of the verdict on `target`, or why there is none to pay for."""
    verdict = feedback.verdict(target)
    if verdict is None:
        return Failure("reward", "no_verdict", f"no verdict on the {target}: grade with a verifier that gives one")
    if verdict.error is not None:
        return verdict.error
    if verdict.label is None or verdict.label not in declared:
        message = f"label {verdict.label!r} of the {target} is none of {', '.join(declared)}"
        return Failure("reward", "undeclared_label", message, str(verdict.label))
    return verdict.label
