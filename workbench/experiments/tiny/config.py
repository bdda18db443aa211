"""The sizes of tiny policies, and the settings of their training."""

from dataclasses import dataclass, field

from workbench.experiments.tiny.curriculum import (
    BETWEEN,
    DOUBTFUL_BETWEEN,
    DOUBTFUL_INSTRUCTIONS,
    INSTRUCTIONS,
    LESSONS,
    Lesson,
)
from workbench.experiments.tiny.examples import Habits
from workbench.world.documents import Document
from workbench.world.world import World


@dataclass(frozen=True)
class PolicyConfig:
    """Model size, data and learning-rate schedule of a tiny policy's training."""

    scale: float = 1.0  # of the world
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    mlp: int = 384
    tokens: int = 256  # tokens of a packed row
    rows: int = 18  # rows of a batch
    passes: int = 24  # over the documents
    lessons: tuple[Lesson, ...] = LESSONS  # before the first pass, at `lesson_lr`
    # Share of skill examples among the tokens of a pass. With .25 the policy forgot how to compare;
    # with .5 it learnt too little of the documents.
    skills: float = 0.3
    mix: dict[str, int] = field(default_factory=lambda: dict(BETWEEN))  # weights of the skills
    lesson_lr: float = 2.5e-3
    lr: float = 2.5e-3
    sft_steps: int = 700
    # with 5e-4 and `emphasis`, the accuracy on half-known facts fell from .64 to .32
    sft_lr: float = 3e-4
    sft_emphasis: float = 1.0
    sft_replay: float = 0.6  # share of the tokens that are pre-training documents
    emphasis: float = 2.5  # weight of an example's token; a document's token has weight 1
    weight_decay: float = 0.05
    save_every: int = 100
    instructions: dict[str, int] = field(default_factory=lambda: dict(INSTRUCTIONS))  # of the SFT
    habits: Habits = field(default_factory=Habits)
    logit_scale: float = 1.0  # of the saved models; above 1, samples have fewer errors
    conflicting: bool = False  # whether the documents conflict, as in `world/conflicting.py`

    def documents(self, world: World) -> list[Document]:
        """Return the pre-training documents."""
        return world.documents if self.conflicting else world.plain_documents


SHORT = (Lesson(30, 0.9, {"copying": 1}), Lesson(30, 0.0, {"equality": 1}, {"who": 1}))
SIZES = {
    "plain": PolicyConfig(),
    "half": PolicyConfig(hidden=96, layers=3, mlp=288),  # half the parameters, the same world
    "full": PolicyConfig(  # the default policy
        passes=18,
        mix=DOUBTFUL_BETWEEN,
        instructions=DOUBTFUL_INSTRUCTIONS,
        habits=Habits(
            abstain=0.14,
            doubt=0.5,
            gaps=0.55,
            decline=0.5,
            off_subject=0.25,
            unknown_compared=0.5,
            thoughts=(2, 4),
        ),
        logit_scale=1.5,
        conflicting=True,
    ),
    "small": PolicyConfig(
        scale=0.05,
        hidden=64,
        layers=2,
        mlp=192,
        rows=8,
        passes=10,
        lessons=SHORT,
        sft_steps=80,
        save_every=20,
    ),
}
