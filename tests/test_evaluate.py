"""Rates, intervals, paired differences and the oracle, on feedback with results by hand."""

import json
from pathlib import Path

import pytest

from benchmarks.truthrl_tiny import paired_difference
from tests.helpers.errors import raises_error
from tests.helpers.small_bench import make_bench
from workbench.experiments.evaluate import evaluate_policy, report
from workbench.methods.bench import bench
from workbench.metrics import RATES, outcome_of, rates, share_of_oracle, table
from workbench.runs.store import iter_feedback
from workbench.types import Failure, Feedback, JsonObject, Question, Response, Verdict

LABELS = {"c": "correct", "u": "uncertain", "i": "incorrect"}


def feedback(
    question: str, label: str, sample: int = 0, tier: str = "known", kind: str = "single"
) -> Feedback:
    """`label` is c, u, i, or f for a failure."""
    asked = Question(question, "?", ("!",), kind=kind, meta={"tier": tier})
    response = Response(f"{question}/{sample}", asked, "", group=question, sample=sample)
    error = Failure("verify", "unreadable", "") if label == "f" else None
    return Feedback(
        response, verdicts=(Verdict("outcome", "answer", LABELS.get(label), error=error),)
    )


def run(labels: str) -> list[Feedback]:
    """One response per question: q0, q1, …"""
    return [feedback(f"q{number}", label) for number, label in enumerate(labels)]


def test_rates_leave_failures_out_and_count_them() -> None:
    assert rates(run("ccuif")) == {
        "accuracy": 0.5,
        "abstention": 0.25,
        "hallucination": 0.25,
        "truthfulness": 0.25,
        "failed": 1,
    }


def test_f_score_is_the_harmonic_mean_of_both_accuracies() -> None:
    """SimpleQA, section 2: 2 of 5 graded answers are correct (.4), and 2 of the 3 attempted ones
    (2/3), so F = 2 · .4 · (2/3) / (.4 + 2/3) = .5. The failed answer counts in neither.
    """
    cells = table(run("cciuuf"))
    assert cells["accuracy"]["value"] == 0.4
    assert cells["attempted_accuracy"]["value"] == pytest.approx(2 / 3)
    assert cells["f_score"]["value"] == pytest.approx(0.5)
    assert cells["attempted_accuracy"]["n"] == 3 and cells["f_score"]["n"] == 5


def test_a_policy_that_always_abstains_has_an_f_score_of_0() -> None:
    cells = table(run("uuu"))
    assert cells["f_score"]["value"] == 0
    assert cells["attempted_accuracy"]["value"] is None


def test_sampled_rates_are_means_over_passes() -> None:
    """KnowRL's Avg@5: five passes over 4 questions with 4, 3, 2, 2 and 1 wrong answers have the
    shares 1, .75, .5, .5 and .25, whose mean is .6.
    """
    passes = ("iiii", "iiiu", "iiuu", "ciui", "cuui")
    sampled = [
        feedback(f"q{number}", passes[sample][number], sample)
        for number in range(4)
        for sample in range(5)
    ]
    assert table(sampled)["hallucination"]["value"] == pytest.approx(0.6)


@pytest.mark.parametrize("labels", ["", "ff"])
def test_rates_without_scored_answers_are_null(labels: str) -> None:
    feedbacks = run(labels)
    empty = {"value": None, "low": None, "high": None, "n": 0}
    expected = dict.fromkeys((*RATES, "attempted_accuracy", "f_score"), empty)
    assert table(feedbacks) == {"n": len(labels), **expected, "failed": len(labels)}
    json.dumps(report(feedbacks, []), allow_nan=False)


def test_an_outcome_needs_a_declared_label() -> None:
    asked = Response("r", Question("q", "?"), "")
    assert outcome_of(Feedback(asked)) is None
    assert outcome_of(Feedback(asked, verdicts=(Verdict("outcome", "answer", "maybe"),))) is None
    assert (
        outcome_of(Feedback(asked, verdicts=(Verdict("outcome", "answer", "correct"),)))
        == "correct"
    )


def test_the_interval_of_a_share_is_binomial() -> None:
    """60 of 100 questions right: the bootstrap draws Binomial(100, .6), whose 2.5 and 97.5
    percentiles are 50 and 69.
    """
    accuracy = table(run("c" * 60 + "i" * 40), seed=1)["accuracy"]
    assert accuracy["value"] == 0.6
    assert accuracy["low"] == pytest.approx(0.50, abs=0.011)
    assert accuracy["high"] == pytest.approx(0.695, abs=0.011)


def test_report_has_the_declared_shape() -> None:
    greedy = [*run("cci"), feedback("x", "u", tier="unknown", kind="yes_no")]
    sampled = [
        feedback(f"q{n}", label, sample) for n in range(3) for sample, label in enumerate("cf")
    ]
    result = report(greedy, sampled, policy="sft", split="test", seeds=[7], resamples=50)
    assert list(result) == "policy split n seeds greedy sampled".split()
    named = (result["policy"], result["split"], result["n"], result["seeds"])
    assert named == ("sft", "test", 4, [7])
    assert list(result["greedy"])[-3:] == ["failed", "by_tier", "by_kind"]
    assert {tier: block["n"] for tier, block in result["greedy"]["by_tier"].items()} == {
        "known": 3,
        "unknown": 1,
    }
    assert result["greedy"]["by_tier"]["unknown"]["abstention"]["value"] == 1.0
    assert result["greedy"]["by_kind"]["single"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert result["sampled"]["accuracy"]["value"] == 1.0
    assert (result["sampled"]["n"], result["sampled"]["failed"]) == (3, 3)


def test_paired_difference_resamples_seeds_too() -> None:
    """Seeds disagree: +2 with one seed and 0 with the other on every question. Only the seeds cause
    uncertainty."""
    result = paired_difference([run("ccccc"), run("ccccc")], [run("iiiii"), run("ccccc")])
    assert (result["diff"], result["low"], result["high"]) == (1.0, 0.0, 2.0)


def test_oracle_and_share_of_it() -> None:
    before, after = table(run("ccccuiiiii")), table(run("ccccuuuuui"))  # T −.1 → .3, oracle .4
    assert share_of_oracle(before, after) == pytest.approx(0.8)
    assert share_of_oracle(before, before) == 0.0
    assert (
        share_of_oracle(table(run("cu")), after) is None
    )  # never wrong, so the share is undefined
    assert share_of_oracle(table([]), after) is None


def test_evaluating_a_policy_is_reproducible(tmp_path: Path) -> None:
    small = make_bench(tmp_path)
    first, again = (
        evaluate_policy("sft", "validation", small, samples=2, seed=5, limit=3, threads=1)
        for _ in range(2)
    )
    assert first == again
    assert first["greedy"]["n"] == first["sampled"]["n"] == 3
    assert first["greedy"]["failed"] == 0
    assert evaluate_policy("sft", "validation", small, samples=0, threads=1)["sampled"]["n"] == 0


def test_greedy_answers_are_stored_for_comparison(policy: str, tmp_path: Path) -> None:
    """A feedback row for each question. An existing file is refused before any generation."""
    out = tmp_path / "test" / "it.jsonl"
    how: JsonObject = {"samples": 0, "limit": 3, "threads": 1, "out": out}
    found = evaluate_policy(policy, "validation", "tiny", **how)
    kept = list(iter_feedback(out))
    assert len(kept) == found["n"] == 3 and {row.response.step for row in kept} == {None}
    assert rates(kept)["accuracy"] == found["greedy"]["accuracy"]["value"]
    before = out.read_bytes()
    with raises_error("exists already: name another file"):
        evaluate_policy(policy, "validation", "tiny", **how)
    assert out.read_bytes() == before

    # the folder has other questions with these ids, so the new file is removed
    passages, new = bench("tiny").with_retrieved(1), out.with_name("new.jsonl")
    with raises_error("two questions have the id .* differ in passages"):
        evaluate_policy(policy, "validation", passages, **how | {"out": new})
    assert not new.exists()
