"""Answer matching against people's judgements (EfficientQA), and abstention against people's."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import claims, stats
from benchmarks.human.verdicts import json_lines
from workbench.answers import is_abstention, matches
from workbench.data import load

JUDGEMENTS = {
    "definitely correct": "def_correct_predictions",
    "possibly correct": "poss_correct_predictions",
    "definitely incorrect": "def_incorrect_predictions",
}
Match = Callable[[str, Sequence[str], str], bool]  # prediction, gold answers, question


@dataclass(frozen=True)
class Judged:
    question: str
    gold: tuple[str, ...]
    prediction: str
    said: str  # one of `JUDGEMENTS`


def efficientqa(folder: Path) -> list[Judged]:
    """Predictions of the competition's systems that were no exact match, as people judged them (arXiv 2101.00133)."""
    rows = json_lines(folder / "nq_open" / "NQ-open.efficientqa.test.1.1.jsonl")
    return [
        Judged(row["question"], tuple(row["answer"]), prediction, said)
        for row in rows
        for said, column in JUDGEMENTS.items()
        for prediction in row[column]
    ]


def squad(text: str) -> str:
    """Lower case, without punctuation, articles and repeated spaces: the normalisation of SQuAD's exact match."""
    bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def contains(prediction: str, gold: Sequence[str], question: str) -> bool:
    said = f" {squad(prediction)} "
    return any(f" {squad(answer)} " in said for answer in gold if squad(answer))


MATCHERS: dict[str, Match] = {
    "workbench": lambda prediction, gold, question: matches(prediction, gold, question=question),
    "equal": lambda prediction, gold, question: prediction in gold,
    "squad_em": lambda prediction, gold, question: squad(prediction) in {squad(answer) for answer in gold},
    "contains": contains,
}


def measure_matching(rows: Sequence[Judged], seed: int) -> dict[str, Any]:
    """How often each matcher accepts what people call definitely correct, possibly correct and definitely incorrect.

    `agreement` is balanced accuracy on the definite ones; possibly correct ones count on neither side.
    """
    told: dict[str, Any] = {"predictions": len(rows), "questions": len({row.question for row in rows})}
    definite = [row for row in rows if row.said != "possibly correct"]
    for name, match in MATCHERS.items():
        accepted = {
            said: [match(row.prediction, row.gold, row.question) for row in rows if row.said == said] for said in JUDGEMENTS
        }
        gold = np.array([row.said == "definitely correct" for row in definite])
        said_yes = np.array([match(row.prediction, row.gold, row.question) for row in definite])
        groups = [row.question for row in definite]
        told[name] = {
            "accepted": {said: stats.wilson(sum(some), len(some)) for said, some in accepted.items()},
            "agreement": stats.interval(partial(stats.balanced, gold, said_yes), groups, seed),
            "accuracy": stats.interval(partial(stats.accuracy, gold == said_yes), groups, seed),
        }
    return told


def measure_abstention(folder: Path, limit: int | None) -> dict[str, Any]:
    """Shares that are taken for an abstention; what each should be is in its name.

    FActScore's annotators left responses without annotations that decline to write a biography: the one set here in which
    people say what an abstention is. SelfAware has questions and gold answers but nothing a model wrote: it can only show
    that neither is taken for an abstention. RefChecker's empty lists of triplets are Claude 2's, not people's.
    """
    biographies = claims.read(folder)[:limit]
    questions = load(folder / "selfaware" / "SelfAware.json", limit=limit)
    responses = [row for file in sorted((folder / "refchecker").glob("*.json")) for row in json.loads(file.read_text())][:limit]
    texts = {
        "FActScore, declined (should be 1)": [one.response.text for one in biographies if one.declined],
        "FActScore, written (should be 0)": [one.response.text for one in biographies if not one.declined],
        "SelfAware, gold answers (should be 0)": [answer for question in questions for answer in question.answers],
        "SelfAware, answerable questions (should be 0)": [q.text for q in questions if q.meta["answerable"]],
        "SelfAware, unanswerable questions (should be 0)": [q.text for q in questions if not q.meta["answerable"]],
        "RefChecker, no triplet by Claude 2": [r["response"] for r in responses if not r["claude2_response_kg"]],
        "RefChecker, with triplets": [r["response"] for r in responses if r["claude2_response_kg"]],
    }
    return {name: stats.wilson(sum(map(is_abstention, some)), len(some)) for name, some in texts.items()}
