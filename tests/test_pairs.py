"""Training rows from graded responses: each rule on a few samples by hand, and its counts of
samples left out.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from tests.test_formats import names
from workbench.training import pairs
from workbench.training.rows import Card, Example, Pair
from workbench.types import Claim, Failure, Feedback, Question, Response, Reward, Verdict

ADA = Question("ada", "Where was Ada born?", ("Oslo", "Christiania"))
BO = Question("bo", "Where was Bo born?", ("Rome",))
FAILURE = Failure("judge", "timeout", "no reply")


def sample(
    question: Question,
    number: int,
    text: str,
    outcome: str | None = None,
    *,
    facts: Sequence[str | None] | None = None,
    reward: float | None = None,
    finish: str = "stop",
    prefill: str = "",
    error: Failure | None = None,
) -> Feedback:
    """One graded response; `facts` are the labels of its claims, each in its own sentence; None is
    a failed verdict.
    """
    response = Response(
        f"{question.id}/{number}",
        question,
        text,
        question.id,
        number,
        finish=finish,
        prefill=prefill,
    )
    verdicts = [Verdict("outcome", "answer", outcome)] if outcome else []
    if outcome == "failed":
        verdicts = [Verdict("outcome", "answer", error=FAILURE)]
    claims = tuple(Claim(i, f"claim {i}", "answer", sentence=i) for i in range(len(facts or ())))
    verdicts += [
        Verdict(f"claim:{i}", "fact", fact, error=None if fact else FAILURE)
        for i, fact in enumerate(facts or ())
    ]
    sentences = (
        tuple((i, i + 1) for i in range(len(facts))) or ((0, len(text)),)
        if facts is not None
        else ()
    )
    return Feedback(response, sentences, claims, tuple(verdicts), {"m": Reward(reward)}, error)


KNOWN = [  # the policy knows Ada's birthplace
    sample(ADA, 0, " Oslo.", "correct"),
    sample(ADA, 1, " Rome.", "incorrect"),
    sample(ADA, 2, " I don't know.", "uncertain"),
    sample(ADA, 3, " Lima.", "failed"),
    sample(ADA, 4, " Oslo, I", "correct", finish="length"),
]
UNKNOWN = [  # but not Bo's
    sample(BO, 0, " Lima.", "incorrect"),
    sample(BO, 1, " I am not sure.", "uncertain"),
    sample(BO, 2, " Cairo", "incorrect", finish="length"),
]


def balanced(card: Card, rows: Sequence[Any], used: int) -> None:
    """Check that the counts of rows, questions and samples add up."""
    assert sum(card.rows.values()) == len(rows)
    assert sum(card.dropped_samples.values()) == card.samples - used
    assert json.loads(json.dumps(asdict(card))) == asdict(card) and asdict(card).keys() == names(
        "card"
    )
    made = {row.question.id for row in rows}
    assert sum(card.dropped_questions.values()) == card.questions - len(made)


def test_gold_answers_are_phrased_as_training_texts() -> None:
    books = Question("books", "Which books did Ada write?", ("Dawn", "Dusk"), kind="list")
    rows, card = pairs.gold([ADA, books, Question("open", "Who is Ada?")])
    assert rows == [Example(ADA, "Oslo."), Example(books, "Dawn and Dusk.")]
    assert card == Card("gold", 3, 0, {"gold": 2}, {"no gold answer": 1})
    assert pairs.gold([replace(ADA, system=r"\boxed{}")])[0][0].text == r"\boxed{Oslo}"
    balanced(card, rows, 0)


def test_r_tuning_teaches_i_dont_know_if_no_sample_is_correct() -> None:
    failed = sample(Question("cy", "Where is Cy?", ("Lima",)), 0, "Lima.", "failed")
    rows, card = pairs.r_tuning([*KNOWN, *UNKNOWN, failed])
    assert rows == [Example(ADA, "Oslo."), Example(BO, "I don't know.")]
    assert card.rows == {"abstention": 1, "gold": 1} and card.dropped_questions == {
        "no usable sample": 1
    }
    assert card.dropped_samples == {"cut off": 2, "not picked": 5, "failed": 2}
    balanced(card, rows, 0)


def test_failed_samples_leave_out_of_knowledge_undecided() -> None:
    """One wrong, one failed: the failed sample may have been correct. A third, correct sample
    decides.
    """
    wrong, right = sample(BO, 0, "Oslo.", "incorrect"), sample(BO, 1, "Rome.", "correct")
    failed = sample(BO, 2, "Bern.", "failed")
    for rule in (pairs.r_tuning, pairs.rft, pairs.truthrl_pairs):
        rows, card = rule([wrong, failed])
        assert rows == [] and card.dropped_questions == {"unsettled: a sample failed": 1}
        assert rule([wrong, failed, right])[0]


def test_rft_keeps_right_traces_and_out_of_knowledge_abstentions() -> None:
    rows, card = pairs.rft([*KNOWN, *UNKNOWN])
    assert rows == [
        Example(ADA, " Oslo.", 1.0, "ada/0"),
        Example(BO, " I am not sure.", 1.0, "bo/1"),
    ]
    assert card.rows == {"abstention": 1, "correct": 1}
    assert card.dropped_samples == {"cut off": 2, "failed": 1, "not picked": 3}
    balanced(card, rows, 2)
    rows, card = pairs.rft([UNKNOWN[0]])
    assert not rows and card.dropped_questions == {"no abstention sample": 1}
    balanced(card, rows, 0)


def test_rft_selects_a_trace_only_by_seed_and_question() -> None:
    right = [sample(ADA, n, f" Oslo {n // 2}.", "correct") for n in range(8)]
    rows, card = pairs.rft(right, seed=1)
    assert len(rows) == 1 and card.dropped_samples == {"not picked": 7}
    assert pairs.rft([*UNKNOWN, *right], seed=1)[0][1:] == rows
    assert len({pairs.rft(right, seed=seed)[0][0].text for seed in range(20)}) == 4


def test_truthrl_prefers_right_over_wrong_and_abstentions_out_of_knowledge() -> None:
    cy = Question("cy", "Where is Cy?", ("Lima",))
    only_right, only_wrong = (
        sample(ADA, 9, " Oslo.", "correct"),
        sample(cy, 0, " Rome.", "incorrect"),
    )
    rows, card = pairs.truthrl_pairs([*KNOWN, *UNKNOWN, only_wrong])
    assert rows == [
        Pair(ADA, " Oslo.", " Rome."),
        Pair(BO, " I am not sure.", " Lima."),
        Pair(cy, "I don't know.", " Rome."),  # no sample abstains
    ]
    assert card.rows == {"abstention over wrong": 2, "correct over wrong": 1}
    assert card.dropped_samples == {"not picked": 1, "cut off": 2, "failed": 1}
    balanced(card, rows, 5)
    rows, card = pairs.truthrl_pairs([only_right, *UNKNOWN[1:2]])
    assert not rows and card.dropped_questions == {"no wrong sample": 2}
    blank, doubted = sample(ADA, 7, " ", "incorrect"), sample(ADA, 8, " Oslo.", "incorrect")
    # a judge gave both labels to the same text
    rows, card = pairs.truthrl_pairs([only_right, blank, doubted])
    assert not rows and card.dropped_samples == {"not picked": 2, "empty": 1}
    rows, card = pairs.truthrl_pairs([KNOWN[4], KNOWN[1]])  # the correct one was cut off
    assert not rows and card.dropped_questions == {"no correct sample": 1}
    balanced(card, rows, 0)


def test_best_over_worst_by_reward_without_ties() -> None:
    rewards = (0.5, None, 2.0, -1.0, 0.0)
    scored = [sample(ADA, n, f" text {n}", reward=reward) for n, reward in enumerate(rewards)]
    cut = sample(ADA, 5, " text 5", reward=9.0, finish="length")
    broken = sample(ADA, 6, " text 6", reward=9.0, error=FAILURE)
    tie = [sample(BO, n, f" text {n}", reward=1.0) for n in range(2)]
    lone = sample(Question("cy", "?"), 0, " text", reward=1.0)
    rows, card = pairs.best_worst([*scored, cut, broken, *tie, lone], "m")
    assert rows == [Pair(ADA, " text 2", " text 3")]
    assert card.dropped_questions == {"one sample": 1, "tie": 1}
    assert card.dropped_samples == {"cut off": 1, "failed": 2, "not picked": 5}
    balanced(card, rows, 2)


def test_filtered_mle_and_unlikelihood_by_factual_sentences() -> None:
    fact, mixed, vague = (
        sample(ADA, n, text, facts=facts)
        for n, (text, facts) in enumerate(
            [("a", ["correct"] * 2), ("b", ["correct", "wrong"]), ("c", ["vague"])]
        )
    )
    failed, cut = (
        sample(BO, 0, "d", facts=[None]),
        sample(BO, 1, "e", facts=["correct"], finish="length"),
    )
    rows, card = pairs.by_factuality([fact, mixed, vague, failed, cut])
    assert rows == [Example(ADA, "a", 1.0, "ada/0")] and card.dropped_questions == {
        "no usable sample": 1
    }
    assert card.dropped_samples == {"cut off": 1, "failed": 1, "not picked": 2}
    balanced(card, rows, 1)
    rows, card = pairs.by_factuality([fact, mixed, vague, failed, cut], 1.0)
    assert [(row.text, row.weight) for row in rows] == [("a", 1.0), ("b", -1.0), ("c", -1.0)]
    assert card.rows == {"factual": 1, "not factual": 2}
    balanced(card, rows, 3)
    assert [row.weight for row in pairs.by_factuality([fact, mixed, vague], 0.25)[0]] == [
        1.0,
        -0.25,
        -0.25,
    ]


def test_knowrls_cold_start_requires_form_correct_answers_and_true_thoughts() -> None:
    text = "<think>Ada was born in Oslo.</think><answer>Oslo</answer>"
    taken = [
        sample(ADA, 0, text, "correct", facts=["correct"]),
        sample(ADA, 1, text[7:], "correct", facts=[], prefill="<think>"),
    ]
    left = [
        sample(ADA, 2, text, "incorrect", facts=["correct"]),
        sample(ADA, 3, text, "correct", facts=["correct", "wrong"]),
        sample(ADA, 4, text, "correct", facts=[None]),
        sample(ADA, 5, text, "correct"),
        sample(ADA, 6, "Oslo", "correct", facts=[]),
        sample(ADA, 7, text, "correct", facts=[], finish="length"),
        sample(ADA, 8, text, "failed", facts=[]),
    ]
    rows, card = pairs.cold_start_knowrl([*taken, *left])
    assert [(row.source, row.text) for row in rows] == [("ada/0", text), ("ada/1", text)]
    reasons = {
        "another form": 1,
        "cut off": 1,
        "failed": 2,
        "not read for claims": 1,
        "wrong claim": 1,
        "wrong outcome": 1,
    }
    assert card.dropped_samples == reasons
    balanced(card, rows, 2)


def test_forags_cold_starts_require_the_form() -> None:
    text = "[Structure] parallel [Outline] 1. Ada [Answer] Ada was born in Oslo."
    made = [sample(ADA, n, t, facts=["wrong"]) for n, t in enumerate((text, "Oslo", " "))]
    rows, card = pairs.cold_start(made, "cold_start_forag")
    assert [row.source for row in rows] == ["ada/0"]
    assert card.dropped_samples == {"another form": 1, "empty": 1}
    balanced(card, rows, 1)
    assert [row.source for row in pairs.cold_start(made, "cold_start_plain")[0]] == ["ada/1"]


def test_forags_cold_start_keeps_factual_answers_only_on_request() -> None:
    text = "[Structure] parallel [Outline] 1. Ada [Answer] Ada was born in Oslo."
    labels: list[list[str | None]] = [["correct"], ["correct", "wrong"], ["vague"], [None]]
    made = [sample(ADA, n, text, facts=facts) for n, facts in enumerate(labels)]
    assert len(pairs.cold_start(made, "cold_start_forag")[0]) == 4
    rows, card = pairs.cold_start(made, "cold_start_forag", factual=True)
    assert [row.source for row in rows] == ["ada/0"]
    assert card.dropped_samples == {"failed": 1, "not factual": 2}
    balanced(card, rows, 1)
