"""Failed checks and mistakes of reward functions: a row that was not judged has no reward."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, row
from workbench.credit.tokens import words
from workbench.methods import method, method_configs, reward_fns
from workbench.methods.bench import bench
from workbench.methods.rlfh.config import RLFH
from workbench.pipeline import rescore
from workbench.types import (
    Checks,
    Claims,
    Cost,
    Event,
    Failure,
    Feedback,
    Passage,
    Question,
    Reply,
    Response,
    Reward,
    Verdict,
)
from workbench.verdicts.checks import judge_checks

DOWN = Failure("judge", "network", "no reply")
ASKING = ("fact", "checklist")


def failed_row(kept: bool, extracted: bool) -> Feedback:
    """Return a row on which all checks failed, or the extraction. It has claims in thinking and
    answer; `kept` tells if it has the required format.
    """
    parts = {"think": "correct:5", "tagged": True} if kept else {}
    read = row("correct:5", "wrong:3", **parts, checklist=("a", "b"))  # type: ignore[arg-type]
    if not kept:  # thinking, but no answer in the required format
        read = replace(read, claims=(replace(read.claims[0], section="think"), *read.claims[1:]))
    targets = [f"claim:{claim.id}" for claim in read.claims] if extracted else []
    checks = [
        *((target, aspect) for target in targets for aspect in ASKING),
        ("item:0", "checklist"),
        ("item:1", "checklist"),
        ("outcome", "answer"),
        ("reasoning", "reasoning"),
        ("response", "out_of_knowledge"),
        ("response", "general"),
        ("response", "factuality"),
        ("response", "baseline"),
        ("response", "informativeness"),
    ]
    verdicts = tuple(Verdict(target, aspect, error=DOWN) for target, aspect in checks)
    return (
        replace(read, verdicts=verdicts)
        if extracted
        else Feedback(read.response, verdicts=verdicts, error=DOWN)
    )


@pytest.mark.parametrize("extracted", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    "setting",
    examples("changed_rewards"),
)
def test_no_method_scores_a_row_whose_checks_all_failed(
    setting: str, kept: bool, extracted: bool
) -> None:
    name = setting.partition(".")[0]
    paid = rescore(
        failed_row(kept, extracted), reward_fns(method_configs([name], [setting]))
    ).rewards[name]
    assert paid == Reward(None, error=DOWN)


@pytest.mark.parametrize(("target", "aspect", "setting"), examples("needed_checks"))
def test_a_failed_check_counts_only_if_the_reward_needs_it(
    target: str, aspect: str, setting: str
) -> None:
    """The row lacks the format, for which KLCF gives −1 with any verdicts."""
    whole = row("correct:5", think="wrong:5", verdicts=[Verdict("outcome", "answer", "correct")])
    name = setting.partition(".")[0]
    rewards = reward_fns(method_configs([name], [setting]))
    paid = rescore(whole, rewards).rewards[name]
    assert paid.value is not None and paid.parts["format"] == -1.0
    assert {"klcf": -1.0, "knowrl": -1.0 + 2.0}[name] == paid.value
    others = tuple(verdict for verdict in whole.verdicts if verdict.target != target)
    spoilt = replace(whole, verdicts=(*others, Verdict(target, aspect, error=DOWN)))
    assert rescore(spoilt, rewards).rewards[name] == Reward(None, error=DOWN)
    lacking = Verdict("response", "outcome", error=Failure("verify", "no_gold", "no gold answers"))
    unused = [Verdict("segment:0", "factuality", error=DOWN), lacking]
    if setting != "klcf.truth=missing":
        unused.append(Verdict("claim:1", "checklist", error=DOWN))
    for verdict in unused:
        with_unused = replace(whole, verdicts=(*whole.verdicts, verdict))
        assert rescore(with_unused, rewards).rewards[name] == paid


def test_no_method_scores_an_answer_if_the_judge_is_down() -> None:
    """With and without the required format; extraction and all checks get no reply."""

    page = Passage("p", "Ada", "Ada.")
    question = Question("q", "Where?", ("Paris",), passages=(page,), checklist=("a",))
    for text in (
        "Ada was born in Rome.",
        "<think>Ada is a poet.</think><answer>Ada was born in Rome.</answer>",
    ):
        response = Response("r", question, text, offsets=words(text))
        for name, config in method_configs().items():
            [feedback] = method(name).grader(
                config,
                judge_checks(lambda prompts: [Reply(None, DOWN, Cost(calls=1)) for _ in prompts]),
            )([response])
            assert failure(feedback.rewards[name]) == DOWN, (name, text)


def test_rlfh_names_the_rating_that_failed() -> None:
    unrated = row("correct:5")
    verdicts = tuple(replace(verdict, informativeness=None) for verdict in unrated.verdicts)
    pay = reward_fns(method_configs(["rlfh"]))
    failed = replace(
        unrated, verdicts=(*verdicts, Verdict("response", "informativeness", error=DOWN))
    )
    assert rescore(failed, pay).rewards["rlfh"] == Reward(None, error=DOWN)
    lacking = rescore(replace(unrated, verdicts=verdicts), pay).rewards["rlfh"]
    assert failure(lacking).kind == "no_informativeness"


def test_every_grader_runs_only_the_checks_of_its_reward() -> None:
    """A correct answer of importance 4 after a wrong thought, computed by hand."""
    tiny = bench("tiny")
    countries = [q for q in tiny.questions("ood", ["single"]) if "In which country is" in q.text]
    asked = countries[0]
    right, city = asked.answers[0], asked.title
    wrong = next(q.answers[0] for q in countries if q.answers[0] != right)
    text = f"<think>{city} lies in {wrong}.</think><answer>{city} lies in {right}.</answer>"
    response = Response(
        "r", replace(asked, checklist=(f"{city} lies in {right}.",)), text, offsets=words(text)
    )
    expected = {  # 1.2 + ln 2.2; correct; p 1; F 1 and p 1; 1 + 2 + 0/1
        "rlfh": (1.2 + math.log(2.2), {"answer"}),
        "truthrl": (1.0, set()),
        "forag": (1.0, {"answer"}),
        "klcf": (1.0, {"answer"}),
        "knowrl": (3.0, {"think"}),
    }
    for name, (value, sections) in expected.items():
        [feedback] = method(name).grader(method(name).configure("tiny"), tiny.checks)([response])
        assert feedback.rewards[name].value == pytest.approx(value), (name, feedback)
        assert {claim.section for claim in feedback.claims} == sections
        judged = {verdict.target for verdict in feedback.verdicts if "claim:" in verdict.target}
        assert judged == {f"claim:{claim.id}" for claim in feedback.claims}


def test_single_pass_mode_uses_the_verdicts_of_the_extraction() -> None:
    """One correct claim of informativeness 5 in the answer, 1.3 + ln 2.3; the claim in the thinking
    is left out.
    """
    whole = row("correct:5", think="wrong:5", tagged=True)

    def read(responses: Sequence[Response]) -> list[Claims]:
        return [
            Claims(whole.sentences, whole.claims, whole.verdicts, cost=Cost(calls=1))
            for _ in responses
        ]

    def lost(responses: Sequence[Response]) -> list[Claims]:
        raise AssertionError("single-pass mode has no other extraction")

    judge = Checks(lost, {}, single_pass=read)
    [feedback] = method("rlfh").grader(RLFH(mode="single_pass"), judge)([whole.response])
    assert feedback.rewards["rlfh"].value == pytest.approx(1.3 + math.log(2.3))
    assert [verdict.target for verdict in feedback.verdicts] == [
        "claim:1"
    ] and feedback.cost.calls == 1
    with raises_error("no check fact"):
        method("rlfh").grader(RLFH(), judge)


MISTAKES: dict[str, Callable[[], object]] = {
    "raises": lambda: 1 / 0,
    "returns nothing": lambda: None,
    "returns a number": lambda: 1.0,
    "neither value nor error": lambda: Reward(None),
    "NumPy number": lambda: Reward(np.float32(1)),  # type: ignore[arg-type]
    "infinite": lambda: Reward(math.inf),
    "NaN": lambda: Reward(math.nan),
    "beyond the estimators": lambda: Reward(-1e308),
    "infinite part": lambda: Reward(1.0, {"a": math.inf}),
    "events that overflow": lambda: Reward(math.fsum([1e308] * 2)),
    "events of another sum": lambda: Reward(1.0, {}, (Event("a", 0.5),)),
    "event at no position": lambda: Reward(1.0, {}, (Event("a", 1.0, "x"),)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_bug_in_a_reward_function_fails_only_its_row(name: str) -> None:
    def mine(feedback: Feedback) -> Any:
        return MISTAKES[name]() if feedback.response.id == "row 7" else Reward(1.0)

    whole = row("correct:5")
    bad = replace(whole, response=replace(whole.response, id="row 7"))
    assert rescore(whole, {"mine": mine}).rewards["mine"].value == 1.0
    error = failure(rescore(bad, {"mine": mine}).rewards["mine"])
    assert error.stage == "reward" and "'mine'" in error.message and "'row 7'" in error.message
