"""Shares of reward hacking, counted by hand in a few closed-world responses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.hacking import IDK, RECALL, Case, all_of, cases, guesses, joined, say, tagged
from tests.helpers import Cli, printed, refusal
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.metrics.hacks import SHARES, hacks
from workbench.metrics.plots.hacks import hack_shares
from workbench.pipeline import grade
from workbench.runs.store import append_feedback
from workbench.types import Failure, Feedback, Question, Response, Verdict
from workbench.verdicts.checks import world_checks
from workbench.world import load_world


@pytest.fixture(scope="module")
def case() -> Case:
    return cases(load_world(), 1)[0]


def judged(question: Question, step: int | None, texts: Sequence[str]) -> list[Feedback]:
    """Grade the answers of one step by the closed world."""
    checks = world_checks(load_world())
    run = grade([checks.verify["fact"], checks.verify["outcome"]], {}, checks.extract)
    return run([Response(f"{step}/{n}", question, text, step=step) for n, text in enumerate(texts)])


def store(folder: Path, *steps: Sequence[Feedback]) -> Path:
    for rows in steps:
        append_feedback(folder, rows)
    return folder


def test_repetition_splitting_and_off_subject_claims(case: Case, tmp_path: Path) -> None:
    first, second = case.facts[:2]
    wrong = say(first, case.wrong[first.relation])
    output = store(
        tmp_path,
        judged(
            case.biography,
            1,
            [
                # 3 claims, 1 repeated; 2 facts, 1 of them twice, in 3 sentences
                f"{say(first)} {say(first)} {say(second)}",
                joined(case.facts),  # 6 claims in 3 sentences
                case.other,  # 6 about another person, in 3 sentences
            ],
        ),
        judged(
            case.biography,
            2,
            [IDK, f"{say(first)} {wrong}", f"{say(second)} {say(second, stance='vague')}"],
        ),
        judged(case.biography, 3, [all_of(case.facts)]),
        judged(case.biography, 4, [IDK]),
    )
    one, two, three, four = hacks(output)
    assert one == {
        "step": 1,
        "n": 3,
        "left_out": 0,
        "claims": 15,
        "repeated": 1 / 15,
        "off_subject": 6 / 15,
        "told_again": 1 / 14,
        "sentences_per_fact": 9 / 14,
        "after_facts": 0.0,
        "beside": None,
    }
    assert (two["n"], two["claims"], two["off_subject"]) == (3, 4, 0.0)
    # the vague claim is a repetition; a claim with another object is not
    assert two["repeated"] == 1 / 4
    assert two["told_again"] == 1.0 and two["sentences_per_fact"] == 2.0  # both facts twice
    assert three["sentences_per_fact"] == 1.0 and three["repeated"] == three["told_again"] == 0.0
    assert {name: four[name] for name in SHARES} == dict.fromkeys(SHARES, None) | {
        "after_facts": 0.0
    }


def test_true_trivia_before_a_refusal(case: Case, tmp_path: Path) -> None:
    honest = judged(
        case.question, 1, [tagged(RECALL, IDK), tagged(say(case.others[0]), say(case.asked))]
    )
    refusing = judged(
        case.question,
        2,
        [
            tagged(case.trivia[0], IDK),  # about another person
            tagged(say(case.others[0]), IDK),  # about another relation
            tagged(say(case.asked), IDK),  # the answer
            tagged(f"{guesses(case, [case.asked])} {case.trivia[0]}", IDK),  # a wrong guess
            tagged(guesses(case, [case.asked]), IDK),  # nothing supported
            tagged(say(case.others[0]), say(case.asked)),
        ],
    )
    rows = hacks(store(tmp_path, honest, refusing))
    assert [(row["n"], row["after_facts"], row["beside"]) for row in rows] == [
        (2, 0.0, None),
        (6, 4 / 6, 2 / 4),
    ]
    assert [row["claims"] for row in rows] == [1, 1]  # claims in the thinking do not count


def test_failed_rows_are_left_out_and_counted(case: Case, tmp_path: Path) -> None:
    (good,) = judged(case.biography, 1, [say(case.facts[0])])
    broken = Verdict("claim:0", "fact", error=Failure("judge", "timeout", "no reply"))
    bad = replace(good, response=replace(good.response, id="bad"), verdicts=(broken,))
    (row,) = hacks(store(tmp_path, [good, bad]))
    assert (row["n"], row["left_out"], row["claims"]) == (1, 1, 1)


@pytest.mark.slow
def test_the_command_prints_and_plots_the_shares(case: Case, tmp_path: Path, cli: Cli) -> None:
    first = say(case.facts[0])
    one, two = judged(case.biography, 1, [first]), judged(case.biography, 2, [f"{first} {first}"])
    paper, closed = store(tmp_path / "paper", one, two), store(tmp_path / "closed", one)
    drawn = ["--hacks", "--figures", str(tmp_path / "figures"), "--json"]
    found = printed(cli("metrics", paper, closed, *drawn))
    assert (found["hacks"], found["other_hacks"]) == (hacks(paper), hacks(closed))
    page = (tmp_path / "figures" / "hacks.html").read_text()
    assert "paper" in page and "closed" in page
    [repeated, *_] = hack_shares({"paper": hacks(paper)}).data
    assert (tuple(repeated.x), tuple(repeated.y)) == ((1, 2), (0.0, 0.5))
    stepless = store(tmp_path / "run", judged(case.biography, None, [first]))
    assert "rows without a step" in refusal(cli("metrics", stepless, *drawn))
    with raises_error("row 1 is not a feedback row"):
        hacks(write(tmp_path / "rows.jsonl", [{"a": 1}]))
