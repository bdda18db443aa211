"""Findings: contrasts by hand, and when a finding holds, fails or is unclear."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reproduce import (
    START,
    Answered,
    Contrast,
    Finding,
    answered,
    check,
    curves,
    effect,
    load_findings,
    means_table,
    measured,
    reports,
    statements,
    terms_of,
)
from tests.helpers import ROOT, examples
from tests.helpers.errors import raises_error
from workbench.experiments.queue import read_entries
from workbench.metrics import Row
from workbench.metrics.plots import outcomes_by_tier
from workbench.types import Claim, Failure, Feedback, Question, Response, Verdict

FINDINGS = ROOT / "benchmarks" / "findings"

FILE = """
[[run]]
method = "rlfh"

[[finding]]
id = "R1"
source = "RLFH, table 1"
statement = "FactScore rises."
[[finding.contrast]]
metric = "factscore_on_subject"
of = "ppo"
least = 0.03
"""


def answer_with(
    question: str, true: int, wrong: int = 0, off: int = 0, tier: str = "known"
) -> Answered:
    labels = ("correct",) * (true + off) + ("wrong",) * wrong
    about = (False,) * true + (True,) * off + (False,) * wrong
    state = "scored" if labels else "abstained"
    return Answered(
        Row("r", question, state, labels, (None,) * len(labels), off_subject=about), tier
    )


def many(true: int, wrong: int = 0) -> list[Answered]:
    return [answer_with(str(number), true, wrong) for number in range(30)]


def arms(after: list[list[Answered]], before: list[Answered]) -> Any:
    return {"ppo": {"test": after}, "start": {"test": [before]}}


def test_a_contrast_by_hand() -> None:
    """factscore: (1 + 2/4) / 2 − (1/2 + 1/4) / 2 = .375; a refusal has no score, so its question is
    left out on both sides.
    """
    before = [
        answer_with("a", 1, 1),
        answer_with("b", 1, 3),
        answer_with("c", 0, 2, tier="unknown"),
    ]
    answers = arms(
        [[answer_with("a", 3), answer_with("b", 2, 1, off=1), answer_with("c", 0, tier="unknown")]],
        before,
    )
    found = effect(Contrast("factscore_on_subject", "ppo"), answers)
    assert (found["value"], found["n"], found["seeds"]) == (0.375, 2, 1)
    # each over its own: (1 + 2/4) / 2 − (1/2 + 1/4 + 0/2) / 3; the start answers the third wrongly
    own = effect(Contrast("factscore_on_subject", "ppo", over="own"), answers)
    assert (own["value"], own["n"]) == (pytest.approx(0.5), 3)
    # true claims: (3 + 2 + 0) / 3 − .8 · (1 + 1 + 0) / 3; wrong or off subject: (0 + 2 + 0) / 3 −
    # (1 + 3 + 2) / 3
    assert effect(Contrast("supported_claims", "ppo", times=0.8), answers)[
        "value"
    ] == pytest.approx(5 / 3 - 0.8 * 2 / 3)
    assert effect(Contrast("unsupported_claims", "ppo"), answers)["value"] == pytest.approx(
        2 / 3 - 6 / 3
    )
    assert effect(Contrast("responded", "ppo", tier="unknown"), answers)["value"] == -1.0
    assert effect(Contrast("responded", "ppo", tier="known"), answers)["value"] == 0.0


def test_several_answers_to_a_question_by_hand() -> None:
    """Over questions: ((1 + 1/2) / 2 + 0) / 2 − ((1 + 0) / 2 + 0) / 2 = 1/8; a refusal has no
    score. Over each arm's own answers: (1 + 1/2 + 0) / 3 − (1 + 0 + 0) / 3 = 1/6.
    """
    after = [answer_with("a", 2), answer_with("a", 1, 1), answer_with("b", 0, 1)]
    before = [answer_with("a", 1), answer_with("a", 0, 1), answer_with("b", 0, 1)]
    refused = [answer_with("b", 0)]
    answers = arms([after + refused], before)
    found = effect(Contrast("factscore_on_subject", "ppo"), answers)
    assert (found["value"], found["n"]) == (pytest.approx(1 / 8), 2)
    own = effect(Contrast("factscore_on_subject", "ppo", over="own"), answers)
    assert own["value"] == pytest.approx(1 / 6)


def test_intervals_include_differences_between_seeds() -> None:
    """All questions gain .5 in one seed and lose .5 in the other: the result is unclear."""
    before, up, down = many(1, 1), many(2), many(0, 2)
    found = effect(Contrast("factscore_on_subject", "ppo"), arms([up, down], before))
    assert found["value"] == 0.0
    assert (found["low"], found["high"]) == (-0.5, 0.5)
    assert found["result"] == "unclear"
    assert effect(Contrast("factscore_on_subject", "ppo"), arms([up, up], before))["low"] == 0.5


@pytest.mark.parametrize(
    ("gain", "least", "result"), [(0.5, 0.03, "holds"), (0.0, 0.03, "fails"), (-0.5, 0.0, "fails")]
)
def test_a_finding_holds_or_fails_by_its_least_effect(
    gain: float, least: float, result: str
) -> None:
    before = many(2, 2)
    after = many(2 + round(4 * gain), 2 - round(4 * gain))
    finding = Finding(
        "R1", "table 1", "It rises.", (Contrast("factscore_on_subject", "ppo", least=least),)
    )
    [found] = check([finding], arms([after], before))
    assert found["result"] == result and found["contrasts"][0]["value"] == gain


def test_too_few_questions_decide_nothing() -> None:
    contrast = Contrast("factscore_on_subject", "ppo")
    answers = arms([many(2)[:4]], many(1, 1)[:4])
    assert effect(contrast, answers)["low"] == 0.5
    assert effect(contrast, answers)["result"] == "unclear"
    assert effect(contrast, arms([many(2)[:5]], many(1, 1)))["result"] == "holds"


def test_a_negative_margin_limits_the_loss() -> None:
    """Accuracy 20 points lower fails a margin of 5 points; an equal accuracy holds."""
    same = [Answered(Row("r", str(n), "no_claims", outcome="correct")) for n in range(40)]
    fewer = [
        Answered(Row("r", str(n), "no_claims", outcome="correct" if n % 5 else "uncertain"))
        for n in range(40)
    ]
    asked = Contrast("accuracy", "ppo", least=-0.05)
    assert effect(asked, arms([same], same))["result"] == "holds"
    assert effect(asked, arms([fewer], same)) | {"low": 0, "high": 0} == {
        "value": pytest.approx(-0.2),
        "low": 0,
        "high": 0,
        "mean_of": 0.8,
        "mean_minus": 1.0,
        "n": 40,
        "seeds": 1,
        "result": "fails",
    }


def test_metrics_of_thinking_include_refusals() -> None:
    text = "<think>Ada is a farmer. Bo is a baker.</think><answer>I do not know.</answer>"
    claims = (
        *(Claim(n, "…", "think", 0, (7, 22), 22, 1.0) for n in range(2)),
        Claim(2, "…", "answer", 1),
    )
    facts = [
        Verdict(f"claim:{n}", "fact", label, informativeness=3)
        for n, label in enumerate(("wrong", "correct", "correct"))
    ]
    verdicts = (
        *facts,
        Verdict("claim:1", "subject", "other"),
        Verdict("outcome", "answer", "uncertain"),
    )
    question = Question("q", "?", ("Rome",), meta={"tier": "half"})
    feedback = Feedback(Response("r", question, text), ((0, 37), (51, 66)), claims, verdicts)
    plain, thought = answered(feedback), answered(feedback, ["think"])
    assert (plain.row.state, plain.row.labels) == ("abstained", ())
    assert (thought.tier, thought.row.labels, thought.row.off_subject) == (
        "half",
        ("wrong", "correct"),
        (False, True),
    )
    # the true claim is off subject
    assert terms_of(thought.row)["supported_claims"] == (0, 1.0)
    assert (terms_of(thought.row)["recall@6"], terms_of(plain.row)["f1@6"]) == (
        (0.0, 1.0),
        (0.0, 1.0),
    )
    failure = Failure("judge", "timeout", "no reply")
    failed = replace(
        feedback, verdicts=(replace(verdicts[0], label=None, error=failure), *verdicts[1:])
    )
    assert answered(failed, ["think"]).row.state == "failed" and "supported_claims" not in terms_of(
        answered(failed, ["think"]).row
    )


def test_recall_and_f1_at_the_facts_of_a_person_by_hand() -> None:
    """Two of three claims are supported, one of them off subject: S = 1, recall 1/6, precision 1/3,
    F1 2/9.
    """
    row = Row(
        "r",
        "a",
        "scored",
        ("correct", "correct", "wrong"),
        (3, 3, 3),
        off_subject=(False, True, False),
    )
    assert terms_of(row)["recall@6"] == pytest.approx((1 / 6, 1.0)) and terms_of(row)[
        "f1@6"
    ] == pytest.approx((2 / 9, 1.0))


def test_on_subject_metrics_require_subject_verdicts_on_all_claims() -> None:
    row = Row("r", "a", "scored", ("correct", "wrong"), (None, None), off_subject=(False, None))
    assert not {"supported_claims", "unsupported_claims", "factscore_on_subject"} & set(
        terms_of(row)
    )
    assert terms_of(row)["factscore"] == (0.5, 1.0)


def test_all_contrasts_must_hold_and_all_arms_must_be_run() -> None:
    before, better = many(1, 1), many(2)
    rises, falls = Contrast("factscore_on_subject", "ppo"), Contrast("unsupported_claims", "ppo")
    assert (
        check([Finding("a", "", "", (rises, falls))], arms([better], before))[0]["result"]
        == "fails"
    )
    [found] = check(
        [Finding("b", "", "", (rises, Contrast("factscore_on_subject", "grpo")))],
        arms([better], before),
    )
    assert found["result"] == "not run" and found["lacking"] == ["grpo"]
    assert measured(found["contrasts"][0]) == "–"


def test_findings_are_read_from_a_file_and_errors_are_named(tmp_path: Path) -> None:
    file = tmp_path / "rlfh.toml"
    file.write_text(FILE)
    assert load_findings(file) == [
        Finding(
            "R1",
            "RLFH, table 1",
            "FactScore rises.",
            (Contrast("factscore_on_subject", "ppo", least=0.03),),
        )
    ]
    for text, message in (
        (
            FILE.replace('"factscore_on_subject"', '"beauty"'),
            "finding 1: no metric 'beauty': choose one of accuracy",
        ),
        (FILE.replace("least =", "most ="), "finding 1: .*unexpected keyword argument 'most'"),
        (FILE.replace('of = "ppo"\n', ""), "missing 1 required positional argument: 'of'"),
        (FILE + FILE.replace('[[run]]\nmethod = "rlfh"\n', ""), "the id R1 is used twice"),
        (FILE.split("[[finding.contrast]]")[0], "it has no"),
        ("[[finding", "rlfh.toml"),
    ):
        file.write_text(text)
        with raises_error(message.replace("[", r"\[")):
            load_findings(file)


@pytest.mark.parametrize(
    "name",
    [
        file.stem
        for file in sorted(FINDINGS.glob("*.toml"))
        if file.with_name(f"{file.stem}_runs.toml").exists()
    ],
)
def test_arms_of_our_findings_are_listed_with_equal_seeds(name: str) -> None:
    study = tomllib.loads((FINDINGS / f"{name}.toml").read_text())
    seeds: dict[str, list[int]] = {}
    for entry in read_entries(FINDINGS / f"{name}_runs.toml"):
        seeds.setdefault(entry.name, []).append(entry.seed)
    assert len({tuple(some) for some in seeds.values()}) == 1
    arms = {*seeds, START, *study.get("stage", {})}
    asked = {set: {*one.get("arms", arms), START} for set, one in study["asked"].items()}
    assert all(arms >= one for one in asked.values())
    for arm, baseline in study.get("inference", {}).items():
        for name_of_set in baseline["asked"]:
            asked[name_of_set].add(arm)
    contrasts = [
        c for finding in load_findings(FINDINGS / f"{name}.toml") for c in finding.contrasts
    ]
    assert all({c.of, c.minus} <= asked[c.asked] for c in contrasts)


[STORED] = examples("stored_findings")


def test_rows_of_stored_results_name_a_finding_once() -> None:
    first, second = statements(STORED)
    assert first == [
        "R1",
        "fails",
        "It rises. (table 1)",
        "accuracy on test: a − b, at least 0.1",
        "+0.050 [+0.010, +0.090]",
    ]
    assert second[:3] == ["", "", ""]
    assert second[3] == "accuracy on test (known): a − b, at least 0.1"


def test_stored_means_and_curves_have_the_format_of_reports_and_runs() -> None:
    shaped = reports(STORED, ["a"])["a"]["greedy"]
    assert shaped["hallucination"] == {"value": 0.3}
    assert set(shaped["by_tier"]) == {"known"}  # no stored outcomes for the other tier
    assert outcomes_by_tier({"a": {"greedy": shaped}}).data[0].y == (0.5,)
    assert curves(STORED, ["a"])["a"][1] == {"step": 2, "reward": None}
    with raises_error("no curves of b: there are those of a"):
        curves(STORED, ["b"])


def test_a_table_of_means_refuses_an_unknown_metric() -> None:
    with pytest.raises(ValueError, match="no metrics"):
        means_table({"means": {}}, {"words": "number of words"})
