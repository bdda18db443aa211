"""The order of pre-training: lessons on mechanisms, then on skills that need them, then documents.

Examples of every skill are mixed into the documents. They are not enough: an answer from a passage
has two or three labelled tokens among hundreds, so mechanisms such as copying take thousands of
steps to appear. Without lessons, after twice the training, the policy answered about any person in
the passages, and comparisons stayed at chance. A mechanism that is practised alone appears within a
few hundred steps. The number of steps varies, so a lesson ends when its exam is passed. Later
lessons and the documents contain some of its drills, so that the mechanism is not forgotten.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path


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


_TABLES = tomllib.loads(Path(__file__).with_name("curriculum.toml").read_text(encoding="utf-8"))
LESSONS = tuple(Lesson(**table) for table in _TABLES["lessons"])
# weights of kinds of examples: in a skill example of the SFT data, between the pre-training
# documents, and in the SFT data
SKILLS: dict[str, int] = _TABLES["skills"]
BETWEEN: dict[str, int] = SKILLS | _TABLES["between"]
INSTRUCTIONS: dict[str, int] = _TABLES["instructions"]
