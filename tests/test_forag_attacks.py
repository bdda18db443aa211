"""Attacks on FoRAG's reward: texts that could earn more without a better answer.

The paper's reward sums over segments, without a limit on their number. By sentences and subclaims,
every further supported sentence earns more. `repeats=once` prevents this for repeated words, but
not for paraphrases or true sentences that the question does not need. By whole answers, no attack
here succeeds. With a reference answer, a refusal earns more than an answer that is worse than the
reference.
"""

from dataclasses import replace
from typing import Any

import pytest

from workbench.methods.bench import bench
from workbench.methods.forag.config import Evaluation, FoRAG
from workbench.methods.forag.method import METHOD
from workbench.types import TWO_FACETS, Checked, Response, Reward, Verdict
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
ONCE: dict[str, Any] = {"repeats": "once"}
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


def test_the_honest_answer_is_worth_its_segments() -> None:
    assert [value(HONEST, evaluation) for evaluation in EVALUATIONS] == [
        1.0,
        len(SHOWN),
        len(SHOWN),
    ]


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_pays_no_more_than_an_honest_answer(attack: str, evaluation: Evaluation) -> None:
    assert value(ATTACKS[attack], evaluation) <= value(HONEST, evaluation)
    # the honest answer's own mean
    assert value(ATTACKS[attack], evaluation, 1.0) <= value(HONEST, evaluation, 1.0) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("attack", FURTHER)
def test_more_of_the_same_pays_by_sentences_and_not_by_whole_answers(attack: str) -> None:
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
def test_a_sentence_that_is_said_again_is_paid_once(way: str, evaluation: Evaluation) -> None:
    """A fact that is repeated, or stated in the new form first, earns no more than in the honest
    answer.
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
    assert value(f"{HONEST} {SHOWN[0]}", evaluation) == len(SHOWN) + 1  # as the paper pays it
    again = paid(f"{HONEST} {AGAIN[way]}", evaluation, 0.5, **ONCE)
    assert (again.value, again.parts["repeated"]) == (value(HONEST, evaluation, 0.5), 1.0)


def test_what_is_told_before_the_answer_is_no_repetition() -> None:
    """A plan may say what the answer then says, and so may the thinking."""
    for before in (
        f"[Structure] {SHOWN[0]} [Outline] {' '.join(SHOWN)} [Answer]",
        f"<think>{' '.join(SHOWN)}</think>",
    ):
        assert value(f"{before} {' '.join(SHOWN)}", "subclaim", **ONCE) == len(SHOWN)


def test_a_false_sentence_is_not_excused_as_a_repetition() -> None:
    """Near a true one in its words, about the same fact, before it or after it: it costs, and
    the true one pays.
    """
    false = SHOWN[0].replace(SHOWN[0].split()[-1], "Ginanex.")
    for told in ((SHOWN[0], false), (false, SHOWN[0])):
        found = paid(f"{PLAN} [Answer] {' '.join(told)}", "subclaim", 0.5, **ONCE)
        assert found.value == 0.0 and sorted(event.value for event in found.events) == [-0.5, 0.5]
        assert found.parts["repeated"] == 0.0


def test_a_refusal_pays_more_than_an_answer_below_the_reference() -> None:
    """Half of the sentences false, against a reference of .9: −.4 a sentence, and nothing for
    nothing.
    """
    poor = f"{PLAN} [Answer] {SHOWN[0]} {FALSE}"
    assert (
        value(poor, "subclaim", 0.9) == pytest.approx(-0.8)
        and value(ATTACKS["a refusal"], "subclaim", 0.9) == 0.0
    )


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("broken", ["[Structure]", PLAN, f"{PLAN} [Answer] ", f"{PLAN} {SHOWN[0]}"])
def test_a_plan_that_is_broken_off_pays_less_than_a_mediocre_answer(
    broken: str, evaluation: Evaluation
) -> None:
    """Against .75, what the sampled answers of the tiny policy have: a quarter less a sentence,
    and .75 less for each of five that were never written."""
    mediocre = f"{PLAN} [Answer] {SHOWN[0]} {FALSE} {SHOWN[1]} {FALSE}"
    given = paid(broken, evaluation, 0.75)
    assert (
        given.value is not None and given.value < value(mediocre, evaluation, 0.75) + 1e-9 <= 1e-9
    )
    assert given.value == -0.75 * given.parts["segments"] < 0.0 and value(broken, evaluation) == 0.0


def test_a_plan_in_the_thinking_and_an_answer_that_declines_are_not_broken_off() -> None:
    for text in (
        "<think>[Structure] comparison</think> I do not know.",
        f"{PLAN} [Answer] I do not know.",
        "",
    ):
        assert value(text, "subclaim", 0.75) == 0.0
