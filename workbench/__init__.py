"""A workbench for making language models factual by reinforcement learning.

The packages are the stages of one pipeline: a policy generates responses, claims and answers get
verdicts, verdicts become rewards, rewards become token credit, and a trainer uses them. Public
names are imported when they are first used, so importing the package loads nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.experiments.api import evaluate, train
    from workbench.experiments.compare import compare
    from workbench.inspector.widgets import token_view
    from workbench.methods import METHODS
    from workbench.scoring.api import rescore, score
    from workbench.scoring.trl import trl_reward
    from workbench.types import Feedback, Question, Response
    from workbench.verdicts.checks import judge_checks, local_checks, world_checks

__version__ = "0.1.0"
__all__ = [
    "METHODS",
    "Feedback",
    "Question",
    "Response",
    "__version__",
    "compare",
    "evaluate",
    "judge_checks",
    "local_checks",
    "rescore",
    "score",
    "token_view",
    "train",
    "trl_reward",
    "world_checks",
]
# public name -> module of the package that defines it
PUBLIC = {
    "METHODS": "methods",
    "Feedback": "types",
    "Question": "types",
    "Response": "types",
    "compare": "experiments.compare",
    "evaluate": "experiments.api",
    "judge_checks": "verdicts.checks",
    "local_checks": "verdicts.checks",
    "rescore": "scoring.api",
    "score": "scoring.api",
    "token_view": "inspector.widgets",
    "train": "experiments.api",
    "trl_reward": "scoring.trl",
    "world_checks": "verdicts.checks",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in PUBLIC:
        raise AttributeError(f"module 'workbench' has no attribute '{name}'")
    return getattr(import_module(f"workbench.{PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return __all__
