"""Feedback rows for the tests of rewards: a word for each claim, a full stop for each sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workbench.types import Claim, Failure, Feedback, Question, Response, Reward, Verdict

Rated = tuple[str, int]  # a "fact" label and the informativeness


def row(
    *sentences: Sequence[Rated],
    think: Sequence[Rated] | None = None,
    tagged: bool = False,
    verdicts: Sequence[Verdict] = (),
    checklist: Sequence[str] = (),
    finish: str = "stop",
) -> Feedback:
    """A response whose sentence i has the claims `sentences[i]`, each ending at its own word:
    "c0 c1. c2."

    `think` gives the claims of one sentence in `<think>`, with the first ids; `tagged` puts the
    sentences into `<answer>`.
    """
    text = ""
    spans: list[tuple[int, int]] = []
    claims: list[Claim] = []
    section = "answer" if tagged else "body"
    for part, rated in [
        *([("think", think)] if think is not None else []),
        *((section, one) for one in sentences),
    ]:
        text += (
            "<think>"
            if part == "think"
            else "<answer>"
            if tagged and "<answer>" not in text
            else " " * bool(spans)
        )
        start = len(text)
        for _ in rated:
            text += " " * (len(text) > start)
            begin, text = len(text), text + f"c{len(claims)}"
            claims.append(
                Claim(
                    len(claims),
                    f"c{len(claims)}",
                    part,
                    len(spans),
                    (begin, len(text)),
                    len(text),
                    1.0,
                )
            )
        text += "." if rated else "nothing."
        spans.append((start, len(text)))
        text += "</think>" if part == "think" else ""
    text += "</answer>" if tagged else ""
    facts = [
        Verdict(f"claim:{number}", "fact", label, informativeness=rating, by="test")
        for number, (label, rating) in enumerate(
            one for rated in [think or (), *sentences] for one in rated
        )
    ]
    offsets = tuple(match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text))
    question = Question("q", "?", ("Vetra",), checklist=tuple(checklist))
    response = Response("r", question, text, offsets=offsets, finish=finish, source="words")
    return Feedback(response, tuple(spans), tuple(claims), (*facts, *verdicts))


def with_verdicts(feedback: Feedback, *verdicts: Verdict) -> Feedback:
    """The row with these verdicts in place of those on the same targets and aspects."""
    changed = {(verdict.target, verdict.aspect) for verdict in verdicts}
    kept = [
        verdict for verdict in feedback.verdicts if (verdict.target, verdict.aspect) not in changed
    ]
    return replace(feedback, verdicts=(*kept, *verdicts))


def failure(reward: Reward) -> Failure:
    """Why the reward has no value."""
    assert reward.value is None and reward.error is not None
    return reward.error
