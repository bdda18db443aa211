"""Verdicts to rewards: pure arithmetic, no model calls. One module per paper.

A factory takes a method's constants and returns its `RewardFn`. The events of a reward sum to
its value; `parts` holds the named quantities of the method's equation. A verdict that is missing
where the arithmetic needs it gives a reward of None with the reason, never a number; so does
whatever a method asked for and a judge, the network or the disk failed to give, even where the
arithmetic would not look at it.
"""

from workbench.reward.forag import forag
from workbench.reward.klcf import klcf
from workbench.reward.knowrl import knowrl
from workbench.reward.rlfh import rlfh
from workbench.reward.truthrl import (
    additive,
    binary,
    conditional,
    knowledge,
    multiplicative,
    reasoning,
    ternary,
)

__all__ = [
    "additive",
    "binary",
    "conditional",
    "forag",
    "klcf",
    "knowledge",
    "knowrl",
    "multiplicative",
    "reasoning",
    "rlfh",
    "ternary",
]
