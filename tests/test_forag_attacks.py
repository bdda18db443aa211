"""Attacks on FoRAG's reward: texts that could earn more without a better answer.

The paper's reward sums over segments, without a limit on their number. Evaluated by sentences or
subclaims, every further supported sentence earns more. `repeats=once` prevents this for repeated
words, but not for paraphrases or true sentences that the question does not need. Evaluated by
whole answers, no attack here succeeds. With a reference answer, a refusal earns more than an answer
that is worse than the reference.
"""

from dataclasses import replace
from typing import Any

import pytest

from workbench.methods.bench import bench
from workbench.methods.forag.config import Evaluation, FoRAG
from workbench.methods.forag.method import METHOD
from workbench.types import TWO_FACETS, Checked, JsonObject, Response, Reward, Verdict
from workbench.verdicts.checks import world_checks
from workbench.world import load_world

WORLD = load_world()
ASKED = next(q for q in bench("tiny").questions("validation", [TWO_FACETS]) if len(q.passages) == 2)
SHOWN = [
    f"{line.rstrip('.')}." for passage in ASKED.passages for line in passage.text.split(". ")[1:]
]
FALSE = "Nobody Known works at Nowhere Labs."
PLAN = "[Structure] comparison [Outline] 1. one [1] 2. two [2]"
HONEST = f"{PLAN} [Answer] {' '.join(SHOWN)}"
ONCE: JsonObject = {"repeats": "once"}
EVALUATIONS: tuple[Evaluation, ...] = ("holistic", "sentence", "subclaim")


def paid(
    text: str, evaluation: Evaluation, baseline: float | None = None, **settings: Any
) -> Reward:
    checks = world_checks(WORLD)
    given = () if baseline is None else (Verdict("response", "baseline", p=baseline),)
    known = replace(
        checks,
        verify={
            **checks.verify,
            "fact": lambda batch: [
                Checked((*one.verdicts, *given)) for one in checks.verify["fact"](batch)
            ],
        },
    )
    [feedback] = METHOD.grader(FoRAG(evaluation=evaluation, **settings), known)(
        [Response("r", ASKED, text)]
    )
    reward = feedback.rewards["forag"]
    assert reward.value is not None, reward.error
    return reward


def value(*given: Any, **settings: Any) -> float:
    found = paid(*given, **settings).value
    assert found is not None
    return found


ATTACKS = {
    "an empty [Answer]": f"{PLAN} [Answer]",
    "claims in the outline": f"[Structure] comparison [Outline] {' '.join(SHOWN * 3)} [Answer]",
    "claims in the outline and the answer": (
        f"[Structure] {SHOWN[0]} [Outline] {' '.join(SHOWN)} [Answer] {' '.join(SHOWN)}"
    ),
    "a second [Answer] behind a false one": f"{PLAN} [Answer] {FALSE} [Answer] {' '.join(SHOWN)}",
    "a second [Answer] that is empty": f"{HONEST} [Answer]",
    "an answer that only plans": PLAN,
    "a refusal": "I do not know.",
}
FURTHER = {
    "one supported sentence, repeated": f"{PLAN} [Answer] {' '.join(SHOWN[:1] * 100)}",
    "the answer again under a second [Answer]": f"{HONEST} [Answer] {' '.join(SHOWN)}",
    "ten thousand sentences": f"{PLAN} [Answer] {' '.join(SHOWN[:1] * 10_000)}",
}


def test_the_honest_answer_earns_1_per_segment() -> None:
    assert [value(HONEST, evaluation) for evaluation in EVALUATIONS] == [
        1.0,
        len(SHOWN),
        len(SHOWN),
    ]


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_that_earn_no_more_than_an_honest_answer(
    attack: str, evaluation: Evaluation
) -> None:
    assert value(ATTACKS[attack], evaluation) <= value(HONEST, evaluation)
    # a baseline of 1.0 is the honest answer's mean
    assert value(ATTACKS[attack], evaluation, 1.0) <= value(HONEST, evaluation, 1.0) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("attack", FURTHER)
def test_repetition_earns_more_by_sentences_and_not_by_whole_answers(attack: str) -> None:
    assert value(FURTHER[attack], "holistic") == value(HONEST, "holistic") == 1.0  # bounded by 1
    for evaluation in ("sentence", "subclaim"):
        reward = paid(FURTHER[attack], evaluation)
        assert reward.value == reward.parts["segments"] > value(HONEST, evaluation)
        assert value(FURTHER[attack], evaluation, 1.0) == 0.0
        assert value(FURTHER[attack], evaluation, 0.9) > value(HONEST, evaluation, 0.9)
        for baseline in (None, 0.5, 0.9):
            most = value(HONEST, evaluation, baseline) + 1e-9
            assert value(FURTHER[attack], evaluation, baseline, **ONCE) <= most


AGAIN = {
    "as it was": SHOWN[0],
    "in capitals": SHOWN[0].upper(),
    "with other signs": f"“{SHOWN[0].removesuffix('.')}”!",
    "in wide letters": "".join(
        chr(ord(sign) + 0xFEE0) if sign.isalpha() else sign for sign in SHOWN[0]
    ),
    "citing several": f"{SHOWN[0].removesuffix('.')} [1, 2][3].",
    "under a second [Answer]": f"[Answer] {SHOWN[0]}",
}


@pytest.mark.parametrize("way", AGAIN)
@pytest.mark.parametrize("evaluation", EVALUATIONS[1:])
def test_a_repeated_sentence_is_rewarded_once(way: str, evaluation: Evaluation) -> None:
    """A fact that is repeated, or first stated in the changed form, earns no more than in the
    honest answer.
    """
    for text in (
        f"{HONEST} {AGAIN[way]}",
        f"{HONEST} {AGAIN[way]} {AGAIN[way]}",
        f"{PLAN} [Answer] {AGAIN[way]} {' '.join(SHOWN)}",
    ):
        for baseline in (None, 0.5):
            most = value(HONEST, evaluation, baseline)
            found = paid(text, evaluation, baseline, **ONCE)
            assert found.value is not None and found.value <= most + 1e-9, text
            assert found.parts["segments"] <= len(SHOWN) and found.parts["repeated"] >= 1
    assert value(f"{HONEST} {SHOWN[0]}", evaluation) == len(SHOWN) + 1  # the paper's reward
    again = paid(f"{HONEST} {AGAIN[way]}", evaluation, 0.5, **ONCE)
    assert (again.value, again.parts["repeated"]) == (value(HONEST, evaluation, 0.5), 1.0)


def test_plan_and_thinking_do_not_count_as_repetition() -> None:
    """The plan and the thinking may contain the sentences of the answer."""
    for before in (
        f"[Structure] {SHOWN[0]} [Outline] {' '.join(SHOWN)} [Answer]",
        f"<think>{' '.join(SHOWN)}</think>",
    ):
        assert value(f"{before} {' '.join(SHOWN)}", "subclaim", **ONCE) == len(SHOWN)


def test_a_false_sentence_does_not_count_as_a_repetition() -> None:
    """Its words are close to a true sentence about the same fact. In either order, the false
    sentence costs and the true one earns.
    """
    false = SHOWN[0].replace(SHOWN[0].split()[-1], "Ginanex.")
    for output in ((SHOWN[0], false), (false, SHOWN[0])):
        found = paid(f"{PLAN} [Answer] {' '.join(output)}", "subclaim", 0.5, **ONCE)
        assert found.value == 0.0 and sorted(event.value for event in found.events) == [-0.5, 0.5]
        assert found.parts["repeated"] == 0.0


def test_a_refusal_earns_more_than_an_answer_below_the_reference() -> None:
    """Half of the sentences are false and the reference is .9: −.4 per sentence, and 0 for the
    refusal.
    """
    poor = f"{PLAN} [Answer] {SHOWN[0]} {FALSE}"
    assert value(poor, "subclaim", 0.9) == pytest.approx(-0.8)
    assert value(ATTACKS["a refusal"], "subclaim", 0.9) == 0.0


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("broken", ["[Structure]", PLAN, f"{PLAN} [Answer] ", f"{PLAN} {SHOWN[0]}"])
def test_a_truncated_plan_earns_less_than_a_mediocre_answer(
    broken: str, evaluation: Evaluation
) -> None:
    """The reference is .75, the tiny policy's mean. The mediocre answer loses .25 per sentence, the
    truncated plan .75 for each of five missing sentences."""
    mediocre = f"{PLAN} [Answer] {SHOWN[0]} {FALSE} {SHOWN[1]} {FALSE}"
    given = paid(broken, evaluation, 0.75)
    assert given.value is not None
    assert given.value < value(mediocre, evaluation, 0.75) + 1e-9 <= 1e-9
    assert given.value == -0.75 * given.parts["segments"] < 0.0 and value(broken, evaluation) == 0.0


def test_a_plan_in_the_thinking_and_a_refusal_are_not_truncated_plans() -> None:
    for text in (
        "<think>[Structure] comparison</think> I do not know.",
        f"{PLAN} [Answer] I do not know.",
        "",
    ):
        assert value(text, "subclaim", 0.75) == 0.0
