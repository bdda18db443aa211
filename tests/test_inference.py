"""Baselines at inference time: best of n, self-consistency and chain of verification, by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.small_bench import make_bench
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.inference import Inference, best_of_n, cove, self_consistency
from workbench.methods.baselines.method import factscore
from workbench.methods.bench import bench
from workbench.metrics import outcome_of
from workbench.pipeline import assemble
from workbench.runs.store import iter_feedback
from workbench.training.collect import ungraded
from workbench.types import Claim, Feedback, Passage, Question, Response, Verdict, WorkbenchError
from workbench.verdicts.checks import rule_checks

GRADE = assemble(rule_checks(), ["outcome"], {})


def samples(question: str, texts: Sequence[str], gold: str = "Rome") -> list[Feedback]:
    asked = Question(question, f"Where is {question}?", (gold,))
    return GRADE([Response(f"{question}/{n}", asked, t, sample=n) for n, t in enumerate(texts)])


def texts(chosen: Sequence[Feedback | Response]) -> list[str]:
    responses = [one.response if isinstance(one, Feedback) else one for one in chosen]
    return [one.text for one in responses]


def by_labels(responses: Sequence[Response]) -> list[Feedback]:
    """Verify a response whose text names its claims: c is correct, w is wrong, "-" is no claim."""
    score = factscore()
    rows = []
    for response in responses:
        names = response.text.strip("-")
        claims = tuple(Claim(n, name, "body") for n, name in enumerate(names))
        verdicts = tuple(
            Verdict(f"claim:{n}", "fact", "correct" if name == "c" else "wrong")
            for n, name in enumerate(names)
        )
        row = Feedback(response, claims=claims, verdicts=verdicts)
        rows.append(replace(row, rewards={"score": score(row)}))
    return rows


def test_best_of_n_takes_the_largest_share_of_supported_claims() -> None:
    """a: the second of the shares 1/2, 2/3, 1/3 and none. b: the first of 1/2 and 1/2. c: the
    first, as no sample has claims.
    """
    drawn = [
        *samples("a", ["cw", "ccw", "cww", "-"]),
        *samples("b", ["cw", "ccww"]),
        *samples("c", ["-", "--"]),
    ]
    assert texts(best_of_n(drawn, by_labels)) == ["ccw", "cw", "-"]


def test_a_sample_without_claims_is_not_a_failure() -> None:
    """Otherwise FactTune-FS could not train a policy that often abstains."""
    refusal, wrong = by_labels([one.response for one in samples("a", ["", "w"])])
    assert refusal.rewards["score"].value is None and wrong.rewards["score"].value == 0
    assert ungraded(refusal, "score") is None and ungraded(wrong, "score") is None
    assert ungraded(replace(wrong, rewards={}), "score") is not None


def test_best_of_n_without_any_claim_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="no answer has a claim"):
        best_of_n(samples("a", ["-", "--"]), by_labels)


def test_self_consistency_abstains_below_half() -> None:
    """a: "rome" has 3 of 4 votes, first given as "Rome.". b: no answer has more than 1 of 4 votes.
    c: exactly half is enough. d: the abstentions are the majority.
    """
    drawn = [
        *samples("a", ["Paris", "Rome.", "rome", "It is Rome."]),
        *samples("b", ["Paris", "Rome", "Oslo", "Bonn"]),
        *samples("c", ["Oslo", "Rome", "Bonn", "Oslo"]),
        *samples("d", ["I don't know.", "Rome", "I am not sure."]),
    ]
    chosen = self_consistency(drawn, GRADE)
    assert texts(chosen) == ["Rome.", "I don't know.", "Oslo", "I don't know."]
    assert list(map(outcome_of, chosen)) == ["correct", "uncertain", "incorrect", "uncertain"]


def test_an_abstention_has_the_form_that_the_prompt_asks_for() -> None:
    asked = Question("b", "Where?", ("Rome",), system=r"Think. Put the answer in \boxed{}.")
    drawn = GRADE(
        [
            Response(f"b/{n}", asked, rf"Hm.</think>\boxed{{{text}}}", prefill="<think>", sample=n)
            for n, text in enumerate(("Paris", "Rome", "Oslo", "Bonn"))
        ]
    )
    [chosen] = self_consistency(drawn, GRADE)
    assert (chosen.response.text, outcome_of(chosen)) == (r"\boxed{I don't know}", "uncertain")


class Scripted:
    """A policy that lists two checks for each draft, and answers "yes" to a check."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def __call__(self, questions: Sequence[Question]) -> list[Response]:
        self.asked += questions
        replies = {"plan": "<think>Hm.</think>Is A in Rome?\n\n Is B? ", "check": "yes"}
        return [
            Response(q.id, q, replies.get(q.id.partition("/")[2].rstrip("01"), f"Final {q.id}."))
            for q in questions
        ]


def test_chain_of_verification_answers_checks_without_the_draft() -> None:
    passage = Passage("p", "A", "A is in Rome.")
    asked = Question("q", "Where is A?", ("Rome",), passages=(passage,), system="Be short.")
    write = Scripted()
    [final] = cove(write, [Response("q/0", asked, "<think>Hm.</think>A is in Oslo.")])
    assert (final.text, final.question) == ("Final q.", asked)
    plan, first, second, last = write.asked
    assert "Where is A?" in plan.text and "A is in Oslo." in plan.text and "Hm." not in plan.text
    assert (first.text, second.text) == ("Is A in Rome?", "Is B?")
    assert first.passages == (passage,) and first.system == ""
    assert "A is in Oslo." in last.text and last.system == "Be short."
    assert "- Is A in Rome? yes\n- Is B? yes" in last.text


def test_a_draft_without_checks_is_still_revised() -> None:
    def write(questions: Sequence[Question]) -> list[Response]:
        return [Response(q.id, q, "" if q.id.endswith("plan") else "Final.") for q in questions]

    assert texts(cove(write, [Response("q/0", Question("q", "?"), "Draft.")])) == ["Final."]
    assert cove(write, []) == []


@pytest.mark.parametrize("inference", ["self_consistency", "cove"])
def test_an_evaluation_reports_the_baseline_and_stores_its_answers(
    inference: Inference, tmp_path: Path
) -> None:
    place, out = make_bench(tmp_path / "policy"), tmp_path / "out.jsonl"
    report = evaluate_policy(
        "sft", "test", place, samples=3, limit=4, inference=inference, out=out, threads=1
    )
    assert report["inference"] == inference and report["inferred"]["n"] == 4
    stored = list(iter_feedback(out))
    assert len(stored) == 4 and {one.response.sample for one in stored} == {0}
    # three different answers of a random policy have no majority of one half
    if inference == "self_consistency":
        assert report["inferred"]["abstention"]["value"] > 0


def test_best_of_n_needs_several_samples(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match="samples is 1: inference=best_of_n chooses"):
        evaluate_policy("sft", "test", make_bench(tmp_path), samples=1, inference="best_of_n")


@pytest.mark.slow
def test_the_local_verifier_chooses_on_the_tiny_bench() -> None:
    """The verifier reads the world's pages; chosen answers are graded by the exact judge."""
    report = evaluate_policy(
        "sft", "validation", bench("tiny"), samples=4, limit=6, kinds=["biography"],
        inference="best_of_n", threads=1,
    )  # fmt: skip
    assert report["inferred"]["n"] == 6
    chosen, drawn = (report[name]["factscore"]["value"] for name in ("inferred", "sampled"))
    assert chosen >= drawn
