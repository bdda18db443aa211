"""What pre-training shows, and in which order: mechanisms, skills that rest on them, then
documents with every skill between.

A passage of hundreds of tokens asks for two or three, and the mechanisms that find them take
thousands of steps to appear from so little. With all skills at once from the beginning, this
policy took the answer of anybody in the passages for the answer of the one asked about, and was
at chance wherever two things are compared, after twice the training. What is practised alone
appears within some hundred steps, but in no fixed number of them: a lesson ends when an exam
says that it was learnt. Then it stays, with some of it between whatever comes next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from workbench.experiments.tiny.drills import DRILLS, Drill, DrillWriter
from workbench.experiments.tiny.skills import Example, SkillWriter


@dataclass(frozen=True)
class Lesson:
    """Drills and examples in the shares of `taught` and `kept`, for at most `steps`, until a
    share of `level` is right of each kind that is taught. What is kept was learnt before: a
    mechanism without practice is lost within some hundred steps."""

    steps: int
    level: float
    taught: dict[str, int]
    kept: dict[str, int] = field(default_factory=dict)

    @property
    def mix(self) -> dict[str, int]:
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
# Between the documents: what rests on comparing is lost first, and is practised more than what
# copies. Who is unknown is shown while the others are learnt: taught afterwards, it cost known
# people's facts (sampled answers .97 right before, .82 after).
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
    """Drills and examples without end."""
    rng = random.Random(f"practice-{seed}")
    kinds, weights = list(mix), list(mix.values())
    while True:
        (kind,) = rng.choices(kinds, weights)
        yield drills.draw(kind) if kind in DRILLS else skills.draw(kind)
