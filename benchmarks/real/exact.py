"""Count the claims of an answer about a country by the table of real facts, not by a judge.

The metrics:

    table_true, table_false   distinct claims about the question's country that the table confirms
                              or contradicts; it decides only known forms of claims
    table_precision           their share that the table confirms
    overrated                 of the claims that the table decides and the judge labelled, the share
                              that the judge called correct minus the share that is true
    words                     the length of the answer
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from workbench.data.real_facts import entities
from workbench.metrics.claims import Term
from workbench.runs.store import iter_feedback
from workbench.types import SUPPORTED, Feedback, JsonObject
from workbench.verdicts.real_facts import table_says

EXACT = ("table_true", "table_false", "table_precision", "overrated", "words")
KINDS = ("long_form",)
OWN = ("its ", "the country", "this country", "the nation", "this nation")


def exact_terms(feedback: Feedback) -> Mapping[str, Term]:
    """Return the numerator and denominator of each metric.

    The result is empty if the response failed or is not about a country of the table.
    """
    response = feedback.response
    names = _names().get(response.question.title)
    if response.question.kind not in KINDS or names is None or feedback.error:
        return {}
    labels = {one.target: one.label for one in feedback.verdicts if one.aspect == "fact"}
    seen, true, decided = set[str](), 0, 0
    judged, excess = 0, 0  # without failed verdicts
    for claim in feedback.claims:
        key = claim.text.casefold()
        says = table_says(claim.text, response.question.title)
        about = key.startswith(OWN) or bool(names & set(_countries().findall(key)))
        if key in seen or says is None or not about:
            continue
        seen.add(key)
        true, decided = true + says, decided + 1
        label = labels.get(f"claim:{claim.id}")
        judged, excess = judged + bool(label), excess + bool(label) * ((label in SUPPORTED) - says)
    return {
        "table_true": (true, 1.0),
        "table_false": (decided - true, 1.0),
        "words": (len(response.text.split()), 1.0),
        **({"table_precision": (true, decided)} if decided else {}),
        **({"overrated": (excess, judged)} if judged else {}),
    }


def exact_steps(folder: Path) -> list[JsonObject]:
    """Return, for each step of a run, the metrics of its rollouts that this module defines."""
    sums: dict[int | None, dict[str, list[float]]] = {}
    for feedback in iter_feedback(folder):
        of_step = sums.setdefault(feedback.response.step, {})
        for name, term in exact_terms(feedback).items():
            of_step[name] = [
                a + b for a, b in zip(of_step.get(name, (0.0, 0.0)), term, strict=True)
            ]
    return [
        {"step": step, **{name: part / whole for name, (part, whole) in of_step.items() if whole}}
        for step, of_step in sums.items()
    ]


@cache
def _countries() -> re.Pattern[str]:
    """All names of countries, the longest first: "equatorial guinea" before "guinea"."""
    names = sorted(set[str]().union(*_names().values()), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")


@cache
def _names() -> Mapping[str, frozenset[str]]:
    return {
        one.name: frozenset(name.casefold() for name in (one.name, *one.aliases))
        for one in entities()
        if one.kind == "country"
    }
