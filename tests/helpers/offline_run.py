"""Rows and settings of small SFT, DPO and reward model trainings."""

from tests.helpers.grpo_run import QUESTIONS, SMALL
from workbench.training.offline import DPO, SFT
from workbench.training.reward_model import RewardModel
from workbench.training.rows import Example, Pair
from workbench.training.scorer import Judged, Segment
from workbench.types import Question
from workbench.util.config import scaled

FEW = {**SMALL, "batch": 4, "micro_batch": 2, "max_length": 64}
TUNED, PREFERRED = scaled(SFT(), **FEW), scaled(DPO(), **FEW)
MODELLED = scaled(RewardModel(), **FEW, critic_learning_rate=1e-2)
CITIES = " Oslo| Rome| Lima| Cairo| Paris| Tokyo| Quito| Accra".split("|")
EXAMPLES = [
    Example(question, CITIES[n % 8], -1.0 if n % 3 == 2 else 1.0)
    for n, question in enumerate(QUESTIONS)
]
PAIRS = [Pair(question, CITIES[n % 8], " I don't know") for n, question in enumerate(QUESTIONS)]
ASKED = Question("q", "Who?")


def judged(*sentences: tuple[str, float]) -> Judged:
    """A row whose sentences, with their targets, are the segments."""
    text, segments = "", []
    for sentence, target in sentences:
        start = len(text) + bool(text)
        text = f"{text} {sentence}".lstrip()
        segments.append(Segment(start, len(text), target))
    return Judged(ASKED, text, tuple(segments))


JUDGED = [
    judged((f"Ada is {a}.", float(a == "good")), (f"Bo is {b}.", float(b == "good")))
    for a in ("good", "bad")
    for b in ("good", "bad")
]
