"""The benchmark of FoRAG's scoring: both ways give the same values, and it counts what it says."""

from __future__ import annotations

import pytest

from benchmarks.forag_cost import (
    EVALUATIONS,
    LEVELS,
    answered,
    each,
    measure,
    reads_of,
    scorer_of,
    show,
    together,
)
from workbench.bench import TINY_POLICY, bench


@pytest.mark.slow
def test_a_pass_for_each_segment_gives_what_one_pass_gives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = bench("tiny").starting_from(str(TINY_POLICY / "sft"))
    answers = answered(place, 3, 1)
    scorer = scorer_of(place.policy, "sequence")
    reads = reads_of(scorer, answers, "subclaim")
    assert together(scorer, reads) == pytest.approx(each(scorer, reads), abs=1e-4)
    cells = measure(place, 3, 1, rounds=1)
    assert set(cells) == {
        f"{evaluation}, {level}" for evaluation in EVALUATIONS for level in LEVELS
    }
    assert all(
        cell["segments"] == cell["answers"]
        for name, cell in cells.items()
        if name.startswith("holistic")
    )
    assert all(
        cell["segments"] > cell["answers"] and cell["ratio"] > 0
        for name, cell in cells.items()
        if "subclaim" in name
    )
    show(cells)
    assert len(capsys.readouterr().out.splitlines()) == 7
