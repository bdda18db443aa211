"""Arms of the findings study that need no training."""

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import findings
from benchmarks.findings import (  # type: ignore[attr-defined]  # a folder has this name
    Asking,
    ask_in_parallel,
    askings,
    differences,
    graded,
    halved,
    means,
    seed_means,
)
from benchmarks.findings_tables import differences as differences_table
from benchmarks.findings_training import sampled
from benchmarks.reproduce import Answered
from tests.helpers.errors import raises_error
from workbench.experiments.inference import best_of_n, cove, verifier_grade
from workbench.experiments.queue import queue_runs
from workbench.experiments.run import plan_run
from workbench.methods.bench import bench
from workbench.metrics import outcome_of
from workbench.metrics.rows import Row
from workbench.policies.generate import generate
from workbench.runs.store import iter_feedback
from workbench.text import final_answer, is_abstention
from workbench.types import JsonMapping, JsonObject, WorkbenchError

SAMPLES = 6
OUTCOMES = ("correct", "incorrect")


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


@pytest.mark.slow
def test_sampled_answers_are_as_many_as_asked_for(tmp_path: Path) -> None:
    place = bench("tiny")
    asked = {"split": "validation", "kinds": ["numeric"], "tiers": ["half"], "sampled": 1}
    rows = list(iter_feedback(graded(place, "sft", {**asked, "samples": 3}, None, tmp_path)))
    samples = Counter(row.response.question.id for row in rows)
    assert set(samples.values()) == {3}
    texts = {(row.response.question.id, row.response.text) for row in rows}
    assert len(texts) > len(samples)  # samples of a question differ
    one = list(iter_feedback(graded(place, "sft", asked, None, tmp_path)))
    assert [row.response.question.id for row in one] == list(samples)
    with raises_error("needs `sampled`"):
        graded(place, "sft", {"split": "validation", "samples": 3}, None, tmp_path)


@pytest.mark.slow
def test_the_other_arms_without_training_choose_or_revise_answers(tmp_path: Path) -> None:
    """`best_of`: the verifier chooses a sample. `cove`: the greedy answer is revised."""
    place = bench("tiny")
    asked = {"split": "validation", "kinds": ["numeric"], "tiers": ["half"]}
    questions = [q for q in place.questions("validation", ["numeric"]) if q.meta["tier"] == "half"]

    def write(asked: Any, **how: Any) -> Any:
        return generate(place.load("sft"), asked, max_new_tokens=place.longest(questions), **how)

    def rows(changed: JsonMapping) -> list[Any]:
        return list(iter_feedback(graded(place, "sft", {**asked, **changed}, None, tmp_path)))

    verify = verifier_grade(place)
    chosen = best_of_n(verify(write(questions, samples=SAMPLES)), verify)
    best = rows({"best_of": SAMPLES})
    assert [one.response.id for one in best] == [one.response.id for one in chosen]
    assert None not in map(outcome_of, best)  # graded by the bench, not by the verifier
    revised = cove(lambda asked: write(asked, greedy=True), write(questions, greedy=True))
    texts = [one.response.text for one in rows({"cove": True})]
    assert texts == [one.text for one in revised]
    assert texts != [one.response.text for one in rows({})]


def test_each_arm_without_training_has_one_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The stored answers of `majority` depend on these settings, so they must not change."""
    monkeypatch.setattr(findings, "start_folder", lambda run, root: root)
    run = SimpleNamespace(
        entry=SimpleNamespace(name="a"),
        config=SimpleNamespace(prompts=SimpleNamespace(system=None)),
        identity={"policy": "sft"},
        folder=tmp_path,
    )
    ways: dict[str, JsonObject] = {
        "majority": {"majority": 16},
        "best_a": {"best_of": 4, "of": "a"},
        "best": {"best_of": 4, "draws": 2},
        "cove": {"cove": True},
        "other": {"majority": 2, "of": "b"},  # an arm that is not run
    }
    inference = {arm: {**way, "asked": ["test"]} for arm, way in ways.items()}
    study = {"asked": {"test": {"split": "test"}}, "inference": inference}
    plain, trained = {"split": "test"}, str(tmp_path)
    assert [
        (one.arm, one.policy, one.asked) for one in askings([run], study, "test", tmp_path)
    ] == [
        ("start", "sft", plain),
        ("a", trained, plain),
        ("majority", "sft", {**plain, "majority": 16}),
        ("best_a", trained, {**plain, "best_of": 4}),
        ("best", "sft", {**plain, "best_of": 4}),
        ("best", "sft", {**plain, "best_of": 4, "sampled": 1}),
        ("cove", "sft", {**plain, "cove": True}),
    ]
    for arm in ("best_a", "cove"):
        refused = {"asked": study["asked"], "inference": {arm: {**inference[arm], "draws": 2}}}
        with pytest.raises(WorkbenchError, match=f"{arm}: `draws` needs several samples"):
            askings([run], refused, "test", tmp_path)
    inference["cove"] = {"cove": True, "majority": 16, "asked": ["test"]}
    with pytest.raises(ValueError, match="too many values"):
        askings([run], study, "test", tmp_path)


def test_processes_share_the_policies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each of five policies is asked by one of three processes; the first starts the others."""
    asked = [
        Asking(arm, name, arm, {}, None, tmp_path / arm)
        for name in ("test", "l2")
        for arm in "abcde"
    ]
    done: list[str] = []
    monkeypatch.setattr(findings, "graded", lambda _, policy, *__: done.append(policy))
    write = "import sys; open(sys.argv[1] + '/part' + sys.argv[-1], 'w')"
    monkeypatch.setattr(sys, "argv", ["-c", write, str(tmp_path)])
    by = {}
    for part in range(3):
        ask_in_parallel(None, asked, 3, part)
        by[part] = sorted(done)
        done.clear()
    assert by == {0: [*"aadd"], 1: [*"bbee"], 2: [*"cc"]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part1", "part2"]


def test_half_of_a_study_halves_steps_and_drawn_questions(tmp_path: Path) -> None:
    runs = tmp_path / "runs.toml"
    runs.write_text(
        '[[run]]\nmethod = "truthrl"\nset = ["truthrl.steps=31"]\n'
        '[[run]]\nmethod = "rft"\nset = ["rft.drawn.questions=240"]\n'
        '[[run]]\nmethod = "sft_gold"\n'
    )
    rl, drawn, sft = queue_runs(runs, tmp_path)
    rl_half, drawn_half, sft_half = (
        plan_run(halved(run.entry, run.steps), tmp_path) for run in (rl, drawn, sft)
    )
    assert rl_half.steps == 16
    assert asdict(drawn_half.config)["drawn"]["questions"] == 120
    assert sft_half.hash == sft.hash  # counts epochs


def test_each_arm_is_compared_with_the_initial_policy() -> None:
    """Of 20 questions, the policy has 15 right and the arm 10; the arm `long` has other ones."""
    answered = [
        [Answered(Row("r", str(n), "no_claims", outcome=OUTCOMES[n >= right])) for n in range(20)]
        for right in (15, 10)
    ]
    found = {"start": {"short": answered[:1]}, "a": {"short": answered[1:]}, "long": {"x": [[]]}}
    study = {"difference": {"rate": {"metric": "accuracy", "asked": "short"}}}
    cells = differences(study, found)
    assert list(cells["rate"]) == ["a"]
    assert (cells["rate"]["a"]["value"], cells["rate"]["a"]["n"]) == (-0.25, 20)
    titles, [first, second] = differences_table({"means": found, "differences": cells})
    assert titles == ["arm", "rate"] and second == ["long", "–"]
    assert first[1].startswith("-0.250 [") and first[1].endswith(" n=20")


def test_the_means_of_each_seed_are_kept() -> None:
    """One seed has 15 of 20 questions right, the other 10: .75 and .5, and .625 together."""
    seeds = [
        [Answered(Row("r", str(n), "no_claims", outcome=OUTCOMES[n >= right])) for n in range(20)]
        for right in (15, 10)
    ]
    found = {"start": {"short": seeds[:1]}, "a": {"short": seeds}}
    assert means(found)["a"]["short"][""]["accuracy"] == 0.625
    kept = seed_means(found)
    assert list(kept) == ["a"]
    assert [one["accuracy"] for one in kept["a"]["short"]] == [0.75, 0.5]


def test_sampled_counts_the_responses_of_a_run_and_its_stages(tmp_path: Path) -> None:
    row = '{"tokens": {"ids": [1, 2]}}\n'
    for place in (".", "samples", "stages/cold_start/samples", "answers/short"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "rollouts.jsonl").write_text(row * 3)
    assert sampled(tmp_path) == {"responses": 9, "tokens": 18}  # without answers to evaluations


def vote(text: str) -> str:
    """The answer; "" for an abstention."""
    answer = (final_answer(text) or "").strip(" .")
    return "" if is_abstention(answer) else answer
