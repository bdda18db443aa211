"""Compare claims by rules with human atomic facts (FActScore, arXiv 2305.14251).

The rules were first written while looking at these biographies, so this is a development set. Later
fixes used only half of the people.

A claim and a fact match if the F1 of their words reaches a threshold. Matching is greedy, the best
pair first, one to one *(ours)*. "He", "she" and "they" count as the topic; articles do not count.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.extraction import by_sentence
from benchmarks.human import stats
from benchmarks.human.verdicts import json_lines
from workbench.claims import rules
from workbench.types import Extract, Question, Response

THRESHOLDS = (0.6, 0.75)
PERSON = {"S": True, "NS": False}  # supported by Wikipedia or not; "IR" (irrelevant) is neither


@dataclass(frozen=True)
class Biography:
    response: Response
    facts: tuple[tuple[str, str], ...]  # human: text and label S, NS or IR
    declined: bool  # no annotation: the model did not answer


def words(text: str, topic: str) -> Counter[str]:
    named = re.sub(r"\b(He|She|They)\b", lambda _: topic, text)
    return Counter(
        word for word in re.findall(r"\w+", named.casefold()) if word not in ("the", "a", "an")
    )


def read(folder: Path) -> list[Biography]:
    found = []
    for file in sorted((folder / "factscore_human").glob("*.jsonl")):
        for row in json_lines(file):
            question = Question(row["topic"], row["input"], title=row["topic"])
            facts = [
                fact
                for one in row["annotations"] or ()
                for fact in one.get("human-atomic-facts") or ()
            ]
            response = Response(f"{file.stem}-{row['topic']}", question, row["output"])
            found.append(
                Biography(
                    response,
                    tuple((fact["text"], fact["label"]) for fact in facts),
                    not row["annotations"],
                )
            )
    return found


def pairs(
    ours: Sequence[Counter[str]], theirs: Sequence[Counter[str]], threshold: float
) -> dict[int, int]:
    """Return matched positions: position in `ours` -> position in `theirs`."""
    scores = [
        (2 * sum((a & b).values()) / max(1, sum(a.values()) + sum(b.values())), i, j)
        for i, a in enumerate(ours)
        for j, b in enumerate(theirs)
    ]
    found: dict[int, int] = {}
    taken: set[int] = set()
    for score, i, j in sorted(scores, key=lambda one: (-one[0], one[1], one[2])):
        if score >= threshold and i not in found and j not in taken:
            found[i] = j
            taken.add(j)
    return found


def measure(folder: Path, limit: int | None, seed: int) -> dict[str, Any]:
    biographies = [one for one in read(folder) if one.facts][:limit]
    extractors: dict[str, Extract] = {"rules": rules(), "sentences": by_sentence}
    results: dict[str, Any] = {
        "responses": len(biographies),
        "human_facts": sum(len(one.facts) for one in biographies),
    }
    for name, extractor in extractors.items():
        found = extractor([one.response for one in biographies])
        texts = [[claim.text for claim in claims.claims] for claims in found]
        results[name] = {"claims": sum(map(len, texts))}
        for threshold in THRESHOLDS:
            results[name][f"F1 ≥ {threshold}"] = _against(biographies, texts, threshold, seed)
    return results


def _against(
    biographies: Sequence[Biography], texts: Sequence[Sequence[str]], threshold: float, seed: int
) -> dict[str, Any]:
    matched = []
    for one, ours in zip(biographies, texts, strict=True):
        topic = re.sub(r" \(.*", "", one.response.question.title)
        bags = [words(text, topic) for text in ours]
        matched.append(pairs(bags, [words(text, topic) for text, _ in one.facts], threshold))
    hit, said, gold = (
        np.array([float(len(row)) for row in column])
        for column in (matched, texts, [b.facts for b in biographies])
    )
    groups = [one.response.question.title for one in biographies]
    measured = {
        name: stats.interval(statistic, groups, seed)
        for name, statistic in stats.precision_recall_f1(hit, said, gold).items()
    }
    return {
        **measured,
        "factscore_with_peoples_labels": _factscore(biographies, matched, groups, seed),
    }


def _factscore(
    biographies: Sequence[Biography],
    matched: Sequence[dict[int, int]],
    groups: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Return FActScore over our claims, each with the human label of its fact.

    It shows how extraction alone changes the score. Unmatched claims, and biographies without a
    match, are left out.
    """
    rows = []
    for one, found, group in zip(biographies, matched, groups, strict=True):
        theirs = [PERSON[label] for _, label in one.facts if label in PERSON]
        ours = [PERSON[one.facts[j][1]] for j in found.values() if one.facts[j][1] in PERSON]
        if theirs and ours:
            rows.append((float(np.mean(ours)), float(np.mean(theirs)), group))
    if not rows:
        return {"n": 0}
    ours_R, theirs_R = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    means: dict[str, Callable[[np.ndarray], float]] = {
        "ours": lambda w: float(w @ ours_R / w.sum()),
        "people": lambda w: float(w @ theirs_R / w.sum()),
        "mean_absolute_difference": lambda w: float(w @ abs(ours_R - theirs_R) / w.sum()),
    }
    results = {
        name: stats.interval(statistic, [row[2] for row in rows], seed)
        for name, statistic in means.items()
    }
    return {"n": len(rows), **results}
