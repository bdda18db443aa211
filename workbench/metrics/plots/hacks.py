"""How much of what a policy writes only serves its reward, over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.metrics.hacks import SHARES
from workbench.metrics.plots import over_steps
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TITLES = {
    "repeated": "claims that repeat one",
    "off_subject": "claims off the subject",
    "told_again": "facts told more than once",
    "sentences_per_fact": "sentences a fact",
    "after_facts": "refusals after supported facts",
    "beside": "of those, beside the question",
}


def hack_shares(
    runs: Mapping[str, Sequence[Mapping[str, Any]]], names: Sequence[str] = tuple(SHARES)
) -> Figure:
    """A panel for each share of `metrics.hacks` that any run has, with a line for each run.

    `runs` maps a label to `metrics.hacks.hacks` of a run: one, or the paper's reward beside the
    option that closes the hack.

    Raises:
        WorkbenchError: the rows of one have no steps, and lie nowhere on a line.
    """
    for label, rows in runs.items():
        if any(row["step"] is None for row in rows):
            raise WorkbenchError(
                f"{label}: it has rows without a step: hacks are drawn over the steps of a"
                " training's rollouts"
            )
    present = [
        name
        for name in names
        if any(row[name] is not None for rows in runs.values() for row in rows)
    ]
    return over_steps(
        runs, {name: TITLES[name] for name in present}, "Hacks of the reward in the rollouts"
    )
