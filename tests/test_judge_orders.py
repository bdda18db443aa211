"""TruthRL's arms under several judges of outcomes, worked by hand: sample, grades and table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.judge_orders import (
    ARMS,
    EXACT,
    FIRST,
    STRICT,
    judged,
    sample,
    strict,
    summarise,
    tau_b,
)
from benchmarks.readme import NOT_RUN, table
from benchmarks.scripted_judge import Fault, JudgeServer
from tests.helpers import write_json
from workbench.judge import endpoint
from workbench.pipeline import grade
from workbench.types import Feedback, JsonMapping, JsonObject, Question, Response
from workbench.verdicts import outcome

QUESTIONS = [
    Question(f"q{n}", f"Where was person {n} born?", answers=(town,), meta={"tier": tier})
    for n, (town, tier) in enumerate(
        [("Rome", "known"), ("Oslo", "known"), ("Lima", "half"), ("Bern", "half")]
    )
]
UNKNOWN = "I do not know."


def arm(*texts: str) -> list[Feedback]:
    return grade([outcome()], {})(
        [Response(q.id, q, text) for q, text in zip(QUESTIONS, texts, strict=True)]
    )


# truthfulness: 1/2, 1/4, 0, and -1/2 for each of the others
ANSWERS = {
    **{name: arm("Rome.", "Paris.", "Paris.", "Paris.") for name in ARMS},
    "rft": arm("Rome.", "Oslo.", "Paris.", "Paris."),
    "dpo": arm("Rome.", "Oslo.", UNKNOWN, "Paris."),
    FIRST: arm("Rome.", "In Oslo.", UNKNOWN, UNKNOWN),
}
ORDER = [FIRST, "dpo", "rft", "start", "sft_gold", "r_tuning", "binary"]


def by_model(script: Any, folder: Path) -> tuple[dict[str, list[Feedback]], JsonObject, int]:
    """The grades, the costs, and the number of requests."""
    with JudgeServer(reply=script) as server:
        judge = endpoint(
            server.url, "m", cache=folder / "m.sqlite", cache_address="m", backoff=0.01, reasks=0
        )
        graded, cost = judged(judge, ANSWERS, folder / "m.jsonl")
        judge.close()
        return graded, cost, server.requests


def accept_all(task: str, elements: Any) -> str:
    assert task == "outcome"
    return '{"label": "correct"}'


def truth(found: JsonMapping, judge: str) -> dict[str, float]:
    arms = found["judges"][judge]["arms"]
    return {name: one["truthfulness"]["value"] for name, one in arms.items()}


def test_the_sample_has_the_same_questions_for_all_arms_and_contains_smaller_samples() -> None:
    drawn = {
        size: {
            name: [row.response.question.id for row in some]
            for name, some in sample(ANSWERS, size, seed=0).items()
        }
        for size in (2, 4)
    }
    assert all(ids == drawn[4]["start"] for ids in drawn[4].values())
    assert drawn[2]["start"] == drawn[4]["start"][:2] and len({*drawn[4]["start"]}) == 4
    tiers = {question.id: question.meta["tier"] for question in QUESTIONS}
    assert {tiers[one] for one in drawn[2]["start"]} == {"known", "half"}


def test_order_tau_and_agreement_of_the_judges(tmp_path: Path) -> None:
    graded, cost, requests = by_model(accept_all, tmp_path)
    strictly = {name: [strict(row) for row in some] for name, some in ANSWERS.items()}
    found = summarise({EXACT: ANSWERS, STRICT: strictly, "m": graded}, {"m": cost})
    assert found["judges"][EXACT]["order"] == ORDER
    # "In Oslo." is correct, but not equal to the gold answer: (1 − 1) / 4
    assert truth(found, EXACT)[FIRST] == 0.5 and truth(found, STRICT)[FIRST] == 0.0
    assert truth(found, STRICT)["dpo"] == truth(found, EXACT)["dpo"] == 0.25
    assert found["judges"][STRICT]["holds"]["first"] == "fails"
    # a judge that accepts all answers counts abstentions alone, so it reverses the order
    assert truth(found, "m") == {**dict.fromkeys(ARMS, 1.0), "dpo": 0.75, FIRST: 0.5}
    # 21 pairs of arms, 6 of them tied by the exact judge and 10 by the model; of the other pairs,
    # the model reverses 11 and ties 4
    assert found["judges"]["m"]["tau"]["value"] == pytest.approx(-11 / (15 * 11) ** 0.5, abs=1e-4)
    assert found["judges"]["m"]["holds"] == {"first": "fails", "tau": "fails"}
    assert {one["result"] for one in found["expected"].values()} == {"fails"}
    # the different answers: Rome, Paris (to three questions), Oslo, In Oslo
    assert requests == cost["prompts"] == 6
    assert found["judges"]["m"]["agreement"]["n"] == 6
    assert found["judges"]["m"]["labels"] == {
        "correct": {"correct": 3},
        "incorrect": {"correct": 3},
    }
    assert by_model(accept_all, tmp_path)[1:] == (cost, 0)  # all replies are cached


def test_tau_b_with_ties() -> None:
    lists = [np.array(some) for some in ([0.1, 0.2, 0.2, 0.4], [0.3, 0.1, 0.5, 0.5])]
    # of 6 pairs, one tied in each list; of the other 4, 3 have the same order: (3 − 1) / 5
    assert tau_b(*lists) == pytest.approx(0.4)


def test_a_failed_verdict_is_left_out_and_counted(tmp_path: Path) -> None:
    def reply(task: str, elements: Any) -> str | Fault:
        texts = [element.text for element in elements if element.tag == "response"]
        return Fault("language") if texts == ["In Oslo."] else '{"label": "incorrect"}'

    graded, cost, _ = by_model(reply, tmp_path)
    found = summarise({EXACT: ANSWERS, "m": graded}, {"m": cost})
    ternary = found["judges"]["m"]["arms"][FIRST]
    assert ternary["failed"] == found["judges"]["m"]["failed"] == 1
    assert cost["failures"] == {"extra_text": 1}
    # of three answers with a verdict, two are abstentions
    assert ternary["truthfulness"]["n"] == 3
    assert ternary["truthfulness"]["value"] == pytest.approx(-1 / 3, abs=1e-4)


def test_the_table(tmp_path: Path) -> None:
    assert table("judge_orders", tmp_path) == NOT_RUN
    graded, cost, _ = by_model(accept_all, tmp_path)
    about = {"date": "2026-11-28", "questions": 4, "answers": 28}
    found = summarise({EXACT: ANSWERS, "m": graded}, {"m": cost})
    write_json(tmp_path / "judge_orders.json", {**about, **found})
    lines = table("judge_orders", tmp_path).splitlines()
    assert "- **fails**: The ternary policy is first under every judge." in lines
    [first] = [
        line
        for line in lines
        if line.startswith("| exact | ternary > dpo > rft > start = sft_gold = ")
    ]
    assert first.endswith("| **holds** | – | – | – | – | – | – | 0 | – |")
    [last] = [line for line in lines if line.startswith("| m | ")]
    assert "| 50% " in last and "| 3, 0, 0 | 3, 0, 0 | 6 | 0 |" in last
