"""How a rule that makes rows of graded responses works: question by question, with everything
that it leaves out counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from workbench.train.rows import Card, Example, Row
from workbench.types import Feedback, Question, WorkbenchError


@dataclass(frozen=True)
class Picked(Generic[Row]):
    """What a rule makes of a question: rows by kind, the ids of the samples in them, why others
    are in none, and why, where that is so, there is no row."""

    rows: Sequence[tuple[str, Row]] = ()
    used: frozenset[str] = frozenset()
    left: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def made(
    rule: str,
    feedbacks: Sequence[Feedback],
    unfit: Callable[[Feedback], str],
    pick: Callable[[Question, Sequence[Feedback]], Picked[Row]],
    left: str,
    undecided: Callable[[Sequence[Feedback]], bool] = lambda sound: False,
) -> tuple[list[Row], Card]:
    """Question by question: leave out what is `unfit`, saying why, `pick` of the rest, and count
    everything.

    Where some samples are unfit and `undecided` is true of the rest, the others could have
    decided otherwise: no row is made.
    """
    rows, kinds = list[Row](), Counter[str]()
    questions, samples = Counter[str](), Counter[str]()
    groups: dict[str, list[Feedback]] = {}
    for feedback in feedbacks:
        groups.setdefault(feedback.response.question.id, []).append(feedback)
    for group in groups.values():
        reasons = [unfit(feedback) for feedback in group]
        sound = [feedback for feedback, why in zip(group, reasons, strict=True) if not why]
        samples.update(why for why in reasons if why)
        if not sound:
            picked = Picked[Row](why="no usable sample")
        elif len(sound) < len(group) and undecided(sound):
            picked = Picked[Row](why="unsettled: a sample failed")
        else:
            picked = pick(group[0].response.question, sound)
        rows += [row for _, row in picked.rows]
        kinds.update(kind for kind, _ in picked.rows)
        questions.update([] if picked.rows else [picked.why])
        samples.update(
            picked.left.get(f.response.id, left) for f in sound if f.response.id not in picked.used
        )
    return rows, Card(
        rule, len(groups), len(feedbacks), counted(kinds), counted(questions), counted(samples)
    )


def distinct(samples: Sequence[Feedback]) -> list[Feedback]:
    return list({sample.response.text: sample for sample in reversed(samples)}.values())[::-1]


def drawn(
    samples: Sequence[Feedback], most: int | None, question: Question, seed: int
) -> list[Feedback]:
    """At most so many of the samples, all by default, in random order."""
    count = len(samples) if most is None else min(most, len(samples))
    return random.Random(f"pairs-{seed}-{question.id}").sample(samples, count)


def example_of(sample: Feedback, weight: float = 1.0) -> Example:
    return Example(sample.response.question, text_of(sample), weight, sample.response.id)


def text_of(sample: Feedback) -> str:
    """All that stands after the prompt's role header: a tag that the prompt opened is part of
    the text.
    """
    return sample.response.prefill + sample.response.text


def unlearnable(sample: Feedback) -> str:
    """Why a text cannot be learnt from, whatever it says; "" if it can."""
    if sample.response.finish != "stop":
        return "cut off"
    return "" if sample.response.text.strip() else "empty"


def ids(samples: Sequence[Feedback]) -> frozenset[str]:
    return frozenset(sample.response.id for sample in samples)


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}


def check_most(most: int) -> None:
    if most < 1:
        raise WorkbenchError(f"most is {most}: it must be at least 1")
