"""The order of pre-training: lessons on mechanisms, then on skills that need them, then documents.

Examples of every skill are mixed into the documents. The lessons exist because an answer from a
passage has two or three labelled tokens among hundreds, so that mechanisms such as copying take
thousands of steps to appear. Without lessons, after twice the training, the policy answered about
any person in the passages, and comparisons stayed at chance. A mechanism that is practised alone
appears within a few hundred steps. The number of steps varies, so a lesson ends when its exam is
passed. Later lessons and the documents keep some practice of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from workbench.experiments.tiny.drills import DRILLS, Drill, DrillWriter
from workbench.experiments.tiny.skills import SkillWriter
from workbench.experiments.tiny.writer import Example


@dataclass(frozen=True)
class Lesson:
    """Practice of new and earlier kinds of drills and examples, until an exam is passed."""

    steps: int  # at most
    level: float  # accuracy that the exam requires for each new kind
    taught: dict[str, int]  # weight of each new kind
    # Weight of each earlier kind: without practice it is forgotten within a few hundred steps.
    kept: dict[str, int] = field(default_factory=dict)

    @property
    def mix(self) -> dict[str, int]:
        """The weights of all kinds."""
        return self.taught | self.kept


LESSONS = (
    Lesson(400, 0.97, {"copying": 1}),
    Lesson(300, 0.95, {"naming": 1}),
    Lesson(900, 0.88, {"binding": 3}, {"naming": 1}),
    Lesson(500, 0.85, {"asking": 3}, {"binding": 1}),
    Lesson(700, 0.88, {"who": 3, "several": 2, "one": 1}),
    Lesson(700, 0.85, {"equality": 3, "order": 3}, {"who": 3, "several": 2}),
    Lesson(700, 0.85, {"agreement": 3, "order": 2}, {"who": 3, "several": 2}),
    Lesson(
        1100,
        0.87,
        {"yes_no": 4, "compare": 4, "check_shown": 3},
        {"agreement": 1, "who": 2, "several": 1},
    ),
    Lesson(
        1000,
        0.80,
        {"stale": 30, "none": 15, "false_premise": 15},
        {
            "several": 8,
            "one": 6,
            "who": 10,
            "compare": 10,
            "yes_no": 12,
            "check_shown": 10,
            "agreement": 4,
            "order": 4,
        },
    ),
)
SKILLS = {
    "one": 12,
    "who": 8,
    "several": 16,
    "stale": 20,
    "none": 18,
    "compare": 12,
    "recall": 10,
    "box": 3,
    "two_hop": 4,
    "false_premise": 8,
    "yes_no": 12,
    "check_shown": 10,
    "list_shown": 4,
    "list": 6,
    "compared": 4,
    "outline": 6,
}
# Weights between the documents. Skills that compare are forgotten first, so they have more weight
# than skills that copy. Abstention about unknown people is learnt together with the facts: learnt
# afterwards, it made the policy forget known people (accuracy of sampled answers .97, then .82).
BETWEEN = SKILLS | {
    "agreement": 6,
    "order": 3,
    "yes_no": 16,
    "check_shown": 14,
    "false_premise": 10,
    "one": 6,
    "several": 12,
    "recall": 6,
    "none": 16,
    "outline": 10,
    "stranger": 30,
    "stranger_thought": 20,
    "stranger_life": 8,
}


def practice(
    mix: Mapping[str, int], drills: DrillWriter, skills: SkillWriter, seed: int | str
) -> Iterator[Drill | Example]:
    """Yield drills and examples without end, in the proportions of `mix`."""
    rng = random.Random(f"practice-{seed}")
    kinds, weights = list(mix), list(mix.values())
    while True:
        (kind,) = rng.choices(kinds, weights)
        yield drills.draw(kind) if kind in DRILLS else skills.draw(kind)
