"""The sizes of the tiny policy, and the settings of its training."""

from dataclasses import dataclass, field

from workbench.experiments.tiny.curriculum import BETWEEN, INSTRUCTIONS, LESSONS, Lesson
from workbench.experiments.tiny.examples import Habits


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
    passes: int = 18  # over the documents
    lessons: tuple[Lesson, ...] = LESSONS  # before the first pass, at `lesson_lr`
    # Share of skill examples among the tokens of a pass. With .25 the policy forgot how to compare;
    # with .5 it learnt too little of the documents.
    skills: float = 0.3
    mix: dict[str, int] = field(default_factory=lambda: dict(BETWEEN))  # weights of the skills
    lesson_lr: float = 2.5e-3
    lr: float = 2.5e-3
    sft_steps: int = 700
    # a higher rate, such as 5e-4 with `emphasis`, makes the policy forget half-known facts
    sft_lr: float = 3e-4
    sft_emphasis: float = 1.0
    sft_replay: float = 0.6  # share of the tokens that are pre-training documents
    emphasis: float = 2.5  # weight of an example's token; a document's token has weight 1
    weight_decay: float = 0.05
    save_every: int = 100
    instructions: dict[str, int] = field(default_factory=lambda: dict(INSTRUCTIONS))  # of the SFT
    habits: Habits = field(default_factory=Habits)
    logit_scale: float = 1.5  # of the saved models; above 1, samples have fewer errors


SHORT = (Lesson(30, 0.9, {"copying": 1}), Lesson(30, 0.0, {"equality": 1}, {"who": 1}))
SIZES = {
    "full": PolicyConfig(),  # the default policy
    "small": PolicyConfig(
        scale=0.05,
        hidden=64,
        layers=2,
        mlp=192,
        rows=8,
        passes=16,
        lessons=SHORT,
        sft_steps=80,
        save_every=20,
    ),
}
