"""Compare answer matching with human judgements (EfficientQA), and abstention with human labels."""

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
from workbench.data import load
from workbench.text import DOUBT, is_abstention, matches, probability

JUDGEMENTS = {
    "definitely correct": "def_correct_predictions",
    "possibly correct": "poss_correct_predictions",
    "definitely incorrect": "def_incorrect_predictions",
}
EXAMPLES = Path(__file__).resolve().parents[2] / "tests" / "examples" / "answers.txt"
# every second line or question is held out: the rules were written without it
HALVES = ("tuned on", "kept aside")
Match = Callable[[str, Sequence[str], str], bool]  # prediction, gold answers, question


@dataclass(frozen=True)
class Judged:
    question: str
    gold: tuple[str, ...]
    prediction: str
    said: str  # one of `JUDGEMENTS`


def efficientqa(folder: Path, half: int | None = None) -> list[Judged]:
    """Return the competition's predictions without an exact match, with human judgements.

    `half` selects every second question, from the first (0) or second (1); None selects all.
    Source: arXiv 2101.00133.
    """
    rows = list(json_lines(folder / "nq_open" / "NQ-open.efficientqa.test.1.1.jsonl"))[
        half :: 1 if half is None else 2
    ]
    return [
        Judged(row["question"], tuple(row["answer"]), prediction, said)
        for row in rows
        for said, column in JUDGEMENTS.items()
        for prediction in row[column]
    ]


@dataclass(frozen=True)
class Example:
    """An answer in the style of a chat model, with our own label."""

    question: str
    gold: tuple[str, ...]
    answer: str
    kind: str
    right: bool


def examples(half: int) -> list[Example]:
    """Return a half of `tests/examples/answers.txt`: 0 (the rules were tuned on it) or 1 (held
    out).
    """
    parts = re.split(
        r"^\[(right|wrong)_(\w+)\]$", EXAMPLES.read_text(encoding="utf-8"), flags=re.M
    )[1:]
    return [
        Example(
            question, tuple(gold.split(" / ")), answer.replace("\\n", "\n"), kind, label == "right"
        )
        for label, kind, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        for question, gold, answer in (
            line.split(" | ") for line in [line for line in body.splitlines() if line][half::2]
        )
    ]


def measure_halves(folder: Path) -> dict[str, Any]:
    """Measure what the rules accept of each half, for our chat-style answers and EfficientQA's."""
    return {
        name: {"chat": _chat(examples(half)), "EfficientQA": _judged(efficientqa(folder, half))}
        for half, name in enumerate(HALVES)
    }


def _chat(rows: Sequence[Example]) -> dict[str, Any]:
    p = [probability(row.answer, row.gold, row.kind, row.question) for row in rows]
    right = [row.right for row, one in zip(rows, p, strict=True) if one > DOUBT[1]]
    return {
        "recall": stats.wilson(sum(right), sum(row.right for row in rows)),
        "precision": stats.wilson(sum(right), len(right)),
        "in doubt": stats.wilson(sum(DOUBT[0] <= one <= DOUBT[1] for one in p), len(p)),
        "right by p": _by_p(p, [row.right for row in rows]),
        "asking": _asking(p, [row.right for row in rows]),
    }


def _judged(rows: Sequence[Judged]) -> dict[str, Any]:
    p = [probability(row.prediction, row.gold, question=row.question) for row in rows]
    pairs = [(one, row.said) for one, row in zip(p, rows, strict=True)]
    accepted = {
        said: [one > DOUBT[1] for one, judged in pairs if judged == said] for said in JUDGEMENTS
    }
    definite = [
        (one, judged == "definitely correct")
        for one, judged in pairs
        if judged != "possibly correct"
    ]
    return {
        "accepted": {said: stats.wilson(sum(some), len(some)) for said, some in accepted.items()},
        "in doubt": stats.wilson(sum(DOUBT[0] <= one <= DOUBT[1] for one in p), len(p)),
        "right by p": _by_p(*zip(*definite, strict=True)),
        "asking": _asking(*zip(*definite, strict=True)),
    }


BANDS = {"from 0.1": DOUBT[0], "from 0.2": 0.2}  # smallest `p` at which a judge is asked


def _asking(p: Sequence[float], right: Sequence[bool]) -> dict[str, Any]:
    """Return the cost and the benefit of asking a judge in doubt.

    These are the share of all answers to ask about, and of the refused right answers. `DOUBT`
    begins at 0.1. From 0.2, only answers that contain a gold answer are asked about.
    """
    refused = [one for one, good in zip(p, right, strict=True) if good and one <= DOUBT[1]]
    return {
        band: {
            "calls": stats.wilson(sum(low <= one <= DOUBT[1] for one in p), len(p)),
            "asked of the right ones refused": stats.wilson(
                sum(low <= one for one in refused), len(refused)
            ),
        }
        for band, low in BANDS.items()
    }


def _by_p(p: Sequence[float], right: Sequence[bool]) -> dict[str, Any]:
    """Return the share of right answers at each value of `p`."""
    found = {
        value: [one for each, one in zip(p, right, strict=True) if each == value]
        for value in sorted(set(p))
    }
    return {str(value): stats.wilson(sum(some), len(some)) for value, some in found.items()}


def squad(text: str) -> str:
    """Normalise a text as SQuAD does: lower case; no punctuation, articles or extra spaces."""
    bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def contains(prediction: str, gold: Sequence[str], question: str) -> bool:
    said = f" {squad(prediction)} "
    return any(f" {squad(answer)} " in said for answer in gold if squad(answer))


MATCHERS: dict[str, Match] = {
    "workbench": lambda prediction, gold, question: matches(prediction, gold, question=question),
    "squad_em": lambda prediction, gold, question: (
        squad(prediction) in {squad(answer) for answer in gold}
    ),
    "contains": contains,
}


def measure_matching(rows: Sequence[Judged], seed: int) -> dict[str, Any]:
    """Measure how often each matcher accepts the answers of each human judgement.

    `agreement` is balanced accuracy without the possibly correct answers.
    """
    results: dict[str, Any] = {
        "predictions": len(rows),
        "questions": len({row.question for row in rows}),
    }
    definite = [row for row in rows if row.said != "possibly correct"]
    for name, match in MATCHERS.items():
        accepted = {
            said: [
                match(row.prediction, row.gold, row.question) for row in rows if row.said == said
            ]
            for said in JUDGEMENTS
        }
        gold = np.array([row.said == "definitely correct" for row in definite])
        said_yes = np.array([match(row.prediction, row.gold, row.question) for row in definite])
        groups = [row.question for row in definite]
        results[name] = {
            "accepted": {
                said: stats.wilson(sum(some), len(some)) for said, some in accepted.items()
            },
            "agreement": stats.interval(partial(stats.balanced, gold, said_yes), groups, seed),
            "accuracy": stats.interval(partial(stats.accuracy, gold == said_yes), groups, seed),
        }
    return results


def measure_abstention(folder: Path, limit: int | None) -> dict[str, Any]:
    """Return the shares classified as abstention; each name says what the share should be.

    FActScore's annotators left responses that decline to write a biography without annotations: the
    only human labels of abstention here. SelfAware has questions and gold answers but no responses,
    and can show only that neither is classified as an abstention. RefChecker's empty lists of
    triplets are from Claude 2, not from people.
    """
    biographies = claims.read(folder)[:limit]
    questions = load(folder / "selfaware" / "SelfAware.json", limit=limit)
    responses = [
        row
        for file in sorted((folder / "refchecker").glob("*.json"))
        for row in json.loads(file.read_text())
    ][:limit]
    texts = {
        "FActScore, declined (should be 1)": [
            one.response.text for one in biographies if one.declined
        ],
        "FActScore, written (should be 0)": [
            one.response.text for one in biographies if not one.declined
        ],
        "SelfAware, gold answers (should be 0)": [
            answer for question in questions for answer in question.answers
        ],
        "SelfAware, answerable questions (should be 0)": [
            q.text for q in questions if q.meta["answerable"]
        ],
        "SelfAware, unanswerable questions (should be 0)": [
            q.text for q in questions if not q.meta["answerable"]
        ],
        "RefChecker, no triplet by Claude 2": [
            r["response"] for r in responses if not r["claude2_response_kg"]
        ],
        "RefChecker, with triplets": [r["response"] for r in responses if r["claude2_response_kg"]],
    }
    return {
        name: stats.wilson(sum(map(is_abstention, some)), len(some)) for name, some in texts.items()
    }
