"""Measure whether our scores order systems as human labels do.

RefChecker (arXiv 2405.14486) has answers of two systems to the same questions in three settings,
FActScore (arXiv 2305.14251) biographies by three systems. People labelled statements of both;
RefChecker's are Claude 2's triplets. The human score of a system is the mean share of supported
statements per response. Ours is the same over claims by rules, each with the label of the statement
that it matches: it shows how extraction changes the order. RefChecker's files have neither the
questions nor gold answers, so they cannot test the order by outcomes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import claims, stats
from benchmarks.human.claims import words
from workbench.claims import rules
from workbench.types import Question, Response

SETTINGS = ("zero_context__nq", "noisy_context__msmarco", "accurate_context__dolly")
SYSTEMS = ("chatgpt", "gpt4")
MATCHED = 0.6  # least word F1 at which a claim matches a statement

Statement = tuple[str, bool]  # its text, and whether people call it supported
Labelled = tuple[str, str, str, tuple[Statement, ...]]  # system, question, response, statements


def refchecker(folder: Path, setting: str) -> list[Labelled]:
    """Return the responses of both systems in one setting, without those that have no triplet."""
    rows = []
    for system in SYSTEMS:
        for row in json.loads(
            (folder / "refchecker" / f"{setting}_{system}_answers.json").read_text(encoding="utf-8")
        ):
            made = tuple(
                (" ".join(one["triplet"]), one["human_label"] == "Entailment")
                for one in row["claude2_response_kg"]
            )
            rows += [(system, row["id"], row["response"], made)] if made else []
    return rows


def factscore(folder: Path) -> list[Labelled]:
    """Return the biographies by three systems, with the facts that people labelled."""
    return [
        (
            one.response.id.split("-")[0],
            one.response.question.title,
            one.response.text,
            tuple(
                (text, claims.PERSON[label]) for text, label in one.facts if label in claims.PERSON
            ),
        )
        for one in claims.read(folder)
        if any(label in claims.PERSON for _, label in one.facts)
    ]


Score = tuple[str, str, float | None]  # system, question, share of supported statements


def by_people(rows: Sequence[Labelled]) -> list[Score]:
    return [
        (system, asked, float(np.mean([right for _, right in made])))
        for system, asked, _, made in rows
    ]


def by_claims(rows: Sequence[Labelled]) -> list[Score]:
    """Return the share of supported claims; None if no claim matches a statement."""
    responses = [
        Response(str(i), Question(asked, "", title=asked), text)
        for i, (_, asked, text, _) in enumerate(rows)
    ]
    found = []
    for (system, asked, _, statements), extracted in zip(rows, rules()(responses), strict=True):
        topic = re.sub(r" \(.*", "", asked)
        ours, theirs = (
            [words(text, topic) for text in texts] for texts in _texts(extracted.claims, statements)
        )
        labels = [statements[j][1] for j in claims.pairs(ours, theirs, MATCHED).values()]
        found.append((system, asked, float(np.mean(labels)) if labels else None))
    return found


def _texts(ours: Sequence[Any], theirs: Sequence[Statement]) -> tuple[list[str], list[str]]:
    return [claim.text for claim in ours], [text for text, _ in theirs]


def measure_set(rows: Sequence[Labelled], seed: int) -> dict[str, Any]:
    """Return each system's score by human labels and by our claims, and the pairs in the same
    order.
    """
    scores = {"people": by_people(rows), "ours": by_claims(rows)}
    scored = {
        system: {
            name: _mean([one for one in each if one[0] == system], seed)
            for name, each in scores.items()
        }
        for system in sorted({row[0] for row in rows})
    }
    return {"systems": scored, "pairs": _pairs(scored)}


def _mean(rows: Sequence[Score], seed: int) -> dict[str, Any]:
    known = [(asked, share) for _, asked, share in rows if share is not None]
    shares = np.array([share for _, share in known])
    statistic = lambda weights: float(weights @ shares / weights.sum())  # noqa: E731
    return {"n": len(known), **stats.interval(statistic, [asked for asked, _ in known], seed)}


def _pairs(systems: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of pairs of systems, and of pairs in the same order; ties do not count."""
    signs = [
        tuple(np.sign(a[name]["value"] - b[name]["value"]) for name in ("people", "ours"))
        for a, b in combinations(systems.values(), 2)
    ]
    return {"n": len(signs), "same": sum(bool(people == ours != 0) for people, ours in signs)}


def measure(folder: Path, seed: int) -> dict[str, Any]:
    sets = {
        "FActScore": factscore(folder),
        **{f"RefChecker, {name}": refchecker(folder, name) for name in SETTINGS},
    }
    results = {name: measure_set(rows, seed) for name, rows in sets.items()}
    pairs = {name: sum(one["pairs"][name] for one in results.values()) for name in ("n", "same")}
    return {**results, "pairs of systems in people's order": pairs}
