"""The lessons before the pre-training of the tiny policy.

A lesson practises a mechanism, such as copying, or a skill that needs it. It ends when an exam is
passed, because the necessary number of steps varies.

The pre-training documents are mixed with examples of every skill, but these are not enough. An
answer from a passage has two or three labelled tokens among hundreds, so a mechanism takes
thousands of steps to appear. Practised alone, it appears within a few hundred steps. Later lessons
and the pre-training repeat some drills, so that the mechanisms are not forgotten.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Lesson:
    """A short training before the pre-training, on a few kinds of synthetic sequences.

    A kind is a drill of random words, such as "copying", or a skill, such as "two_hop". The lesson
    trains new kinds (`taught`) and repeats earlier kinds (`kept`). It ends when the accuracy on
    each new kind reaches `level`, or after `steps` steps.
    """

    steps: int  # at most
    level: float  # accuracy that the exam requires for each new kind
    taught: dict[str, int]  # weight of each new kind
    # Weight of each earlier kind: without practice it is forgotten within a few hundred steps.
    kept: dict[str, int] = field(default_factory=dict)

    @property
    def mix(self) -> dict[str, int]:
        """The sampling weight of each kind of drill or skill in the lesson, new or repeated."""
        return self.taught | self.kept


_TABLES = tomllib.loads(Path(__file__).with_name("curriculum.toml").read_text(encoding="utf-8"))
LESSONS = tuple(Lesson(**table) for table in _TABLES["lessons"])
# weights of kinds of examples: in a skill example of the SFT data, between the pre-training
# documents, and in the SFT data
SKILLS: dict[str, int] = _TABLES["skills"]
BETWEEN: dict[str, int] = SKILLS | _TABLES["between"]
INSTRUCTIONS: dict[str, int] = _TABLES["instructions"]
