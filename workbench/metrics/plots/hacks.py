"""Figures of reward hacking over training."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.metrics.plots import over_steps
from workbench.types import JsonMapping, WorkbenchError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TITLES = {  # share that `metrics.hacks` computes -> title of its panel
    "repeated": "claims that repeat one",
    "off_subject": "claims off the subject",
    "told_again": "facts stated more than once",
    "sentences_per_fact": "sentences per fact",
    "after_facts": "refusals after supported facts",
    "beside": "of those, off the question",
}


def hack_shares(runs: Mapping[str, Sequence[JsonMapping]]) -> "Figure":
    """Plot six signs of reward hacking over training steps: a panel per sign, a line per run.

    A sign is a number such as the share of repeated claims. A sign without any value gets no panel.

    Args:
        runs: label of a run -> result of `metrics.hacks.hacks`: a row of numbers for each step.

    Raises:
        WorkbenchError: a row has no step.
    """
    for label, rows in runs.items():
        if any(row["step"] is None for row in rows):
            raise WorkbenchError(
                f"{label} has rows without a step: name a training run, whose rollouts have steps"
            )
    return over_steps(runs, TITLES, "Hacks of the reward in the rollouts")
