"""The demo's tables and sentences, from reports by hand; the notebooks train the runs."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from workbench.experiments.demo import (
    REWARDS,
    SHOWN_PER_TIER,
    fixed_questions,
    oracle_line,
    results_table,
    run_demo,
)
from workbench.experiments.evaluate import report
from workbench.types import Feedback, Question, Response, Verdict
from workbench.world.facts import TIERS


def graded(outcomes: Mapping[str, str]) -> list[Feedback]:
    """One answer for each letter of a tier's outcomes: c(orrect), u(ncertain), i(ncorrect)."""
    labels = {"c": "correct", "u": "uncertain", "i": "incorrect"}
    return [
        Feedback(
            Response("r", Question(f"{tier}-{number}", "?", meta={"tier": tier}), ""),
            verdicts=(Verdict("outcome", "answer", labels[letter]),),
        )
        for tier, letters in outcomes.items()
        for number, letter in enumerate(letters)
    ]


@pytest.fixture(scope="module")
def reports() -> dict[str, dict[str, Any]]:
    greedy = {
        # accuracy 1/2, truthfulness 0, the oracle's 1/2
        "initial policy": {"known": "cccc", "unknown": "iiii"},
        "ternary": {"known": "cccc", "unknown": "uuui"},  # truthfulness 3/8: 3/4 of the way
        "binary": {"known": "ccci", "unknown": "iiii"},  # truthfulness -1/4: half of the way back
    }
    return {name: report(graded(outcomes), []) for name, outcomes in greedy.items()}


def printed(table: Any) -> str:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_results_table_has_a_row_per_tier_and_policy(reports: dict[str, dict[str, Any]]) -> None:
    text = printed(results_table(reports, "greedy"))
    assert text.splitlines()[0].strip() == "8 test questions, greedy [95 % intervals]"
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in text.splitlines()
        if "│" in line
    ]
    assert [row[:2] for row in rows] == [
        [tier if policy == "initial policy" else "", policy]
        for tier in ("all", "known", "unknown")
        for policy in reports
    ]
    whole = {row[1]: row[2:] for row in rows[:3]}
    assert [cell.split()[0] for cell in whole["ternary"]] == ["50%", "38%", "12%", "38%"]
    # ternary on unknown entities, without intervals
    assert rows[-2][2:] == ["0%", "75%", "25%", "-25%"]


def test_oracle_line_states_the_share_of_each_reward(reports: dict[str, dict[str, Any]]) -> None:
    assert oracle_line(reports).endswith(": ternary +75%, binary -50%")
    never_wrong = {**reports, "initial policy": report(graded({"known": "cc"}), [])}
    assert oracle_line(never_wrong).endswith("this policy is wrong: ")


def test_fixed_questions_are_about_different_people() -> None:
    asked = fixed_questions()
    assert asked == fixed_questions()
    counts = Counter(question.meta["tier"] for question in asked)
    assert list(counts) == [tier for tier in TIERS if tier in counts] and set(counts.values()) == {
        SHOWN_PER_TIER
    }
    assert len({question.title for question in asked}) == len(asked)


@pytest.mark.parametrize("status", ["interrupted", "too_many_failures"])
def test_a_stopped_run_ends_the_demo_with_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    # its training takes a minute
    monkeypatch.setattr("workbench.experiments.demo.demo_run", lambda *_: {"status": status})
    assert run_demo(tmp_path) == {REWARDS[0]: {"status": status}}
