"""Arms of the findings study that need no training."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.findings import graded  # type: ignore[attr-defined]  # a folder has this name
from workbench.methods.bench import bench
from workbench.policies.generate import generate
from workbench.runs.store import iter_feedback
from workbench.text import final_answer, is_abstention

SAMPLES = 6


@pytest.mark.slow
def test_the_majority_arm_abstains_unless_half_of_the_samples_agree(tmp_path: Path) -> None:
    place, tiers = bench("tiny"), ["half", "unknown"]
    asked = {"split": "validation", "kinds": ["numeric"], "tiers": tiers, "majority": SAMPLES}
    folder = graded(place, "sft", asked, None, tmp_path)
    questions = [q for q in place.questions("validation", ["numeric"]) if q.meta["tier"] in tiers]
    samples = generate(
        place.load("sft"), questions, max_new_tokens=place.longest(questions), samples=SAMPLES
    )
    votes: dict[str, Counter[str]] = {question.id: Counter() for question in questions}
    for one in samples:
        votes[one.question.id][vote(one.text)] += 1
    rows = list(iter_feedback(folder))
    assert [row.response.question.id for row in rows] == [question.id for question in questions]
    answers = [vote(row.response.text) for row in rows]
    for row, answer in zip(rows, answers, strict=True):
        own = votes[row.response.question.id]
        most = max(own.values())
        if most >= SAMPLES / 2:
            assert own[answer] == most
        else:
            assert answer == ""
    # both cases occur
    assert 0 < sum(max(own.values()) < SAMPLES / 2 for own in votes.values()) < len(rows)
    assert graded(place, "sft", asked, None, tmp_path) == folder  # read, not generated again


def vote(text: str) -> str:
    """The answer; "" for an abstention."""
    answer = (final_answer(text) or "").strip(" .")
    return "" if is_abstention(answer) else answer
