"""A workbench for making language models factual by reinforcement learning.

The package names are the stages of one pipeline: a policy generates responses, answers and
claims get verdicts, verdicts become rewards, rewards become token credit, and a trainer uses
them. Importing the package imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.scoring.trl import trl_reward

__version__ = "0.1.0"
__all__ = ["__version__", "trl_reward"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name == "trl_reward":
        from workbench.scoring.trl import trl_reward

        return trl_reward
    raise AttributeError(f"module 'workbench' has no attribute '{name}'")
