"""Feedback rows for tests of rewards: one word per claim, a full stop after each sentence."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.pipeline import rescore
from workbench.types import Claim, Failure, Feedback, Question, Response, Reward, RewardFn, Verdict


def row(
    *sentences: str,
    think: str | None = None,
    tagged: bool = False,
    verdicts: Sequence[Verdict] = (),
    checklist: Sequence[str] = (),
    finish: str = "stop",
) -> Feedback:
    """A response whose sentence i has the claims `sentences[i]`, each ending at its own word:
    "c0 c1. c2." A claim is written as "label:informativeness".

    `think` gives the claims of one sentence in `<think>`, with the first ids; `tagged` puts the
    sentences into `<answer>`.
    """
    text = ""
    spans: list[tuple[int, int]] = []
    claims: list[Claim] = []
    section = "answer" if tagged else "body"
    parts = [("think", think)] if think is not None else []
    parts += [(section, one) for one in sentences]
    for part, rated in parts:
        text += (
            "<think>"
            if part == "think"
            else "<answer>"
            if tagged and "<answer>" not in text
            else " " * bool(spans)
        )
        start = len(text)
        for _ in rated.split():
            text += " " * (len(text) > start)
            begin, text = len(text), text + f"c{len(claims)}"
            number, end = len(claims), len(text)
            claims.append(Claim(number, f"c{number}", part, len(spans), (begin, end), end, 1.0))
        text += "." if rated.strip() else "nothing."
        spans.append((start, len(text)))
        text += "</think>" if part == "think" else ""
    text += "</answer>" if tagged else ""
    facts = [
        Verdict(f"claim:{number}", "fact", label, informativeness=int(rating), by="test")
        for number, (label, rating) in enumerate(
            claim.split(":") for _, rated in parts for claim in rated.split()
        )
    ]
    offsets = tuple(match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text))
    question = Question("q", "?", ("Vetra",), checklist=tuple(checklist))
    response = Response("r", question, text, offsets=offsets, finish=finish, source="words")
    return Feedback(response, tuple(spans), tuple(claims), (*facts, *verdicts))


def with_verdicts(feedback: Feedback, *verdicts: Verdict) -> Feedback:
    """Replace the verdicts on the same targets and aspects."""
    changed = {(verdict.target, verdict.aspect) for verdict in verdicts}
    kept = [
        verdict for verdict in feedback.verdicts if (verdict.target, verdict.aspect) not in changed
    ]
    return replace(feedback, verdicts=(*kept, *verdicts))


def payer(reward: Callable[[Any], RewardFn], usual: Any) -> Callable[..., Reward]:
    """A function of a row (and settings, by default `usual`) that returns the method's reward."""

    def pay(feedback: Feedback, config: Any = usual) -> Reward:
        return rescore(feedback, {"it": reward(config)}).rewards["it"]

    return pay


def failure(reward: Reward) -> Failure:
    """The reason why the reward has no value."""
    assert reward.value is None and reward.error is not None
    return reward.error
