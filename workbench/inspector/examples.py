"""A worked example (a short answer with claims and verdicts) for tests, notebook and inspector."""

from __future__ import annotations

import re

from workbench.credit.attribute import locate
from workbench.text import sentences
from workbench.types import Claim, Feedback, Passage, Question, Response, Verdict

ANSWER = (
    "<think>Both cross the river Osk. The Osk tunnel is the younger one.</think>"
    "<answer>Yes, the Tarven bridge was opened in 1934 and painted green. "
    "It was probably the longest bridge of the valley.</answer>"
)

QUESTION = Question(
    id="tarven",
    text="Is the Tarven bridge older than the Osk tunnel?",
    answers=("yes",),
    title="Tarven bridge",
    passages=(
        Passage(
            "bridge",
            "Tarven bridge",
            "The Tarven bridge over the Osk was opened in 1934. It has always been painted red. "
            "At 412 metres it is the longest bridge of the valley.",
        ),
        Passage(
            "tunnel", "Osk tunnel", "The Osk tunnel, opened in 1951, runs under the river Osk."
        ),
    ),
    checklist=(
        "The Tarven bridge was opened in 1934.",
        "The Osk tunnel was opened in 1951.",
        "The Tarven bridge is red.",
    ),
    kind="yes_no",
)

# text, section, sentence, label, informativeness (5 answers the question … 1 useless), passage and
# the quoted evidence
CLAIMS = (
    ("The Osk tunnel is the younger one.", "think", 1, "correct", 5, "tunnel", "opened in 1951"),
    (
        "The Tarven bridge was opened in 1934.",
        "answer",
        2,
        "correct",
        4,
        "bridge",
        "was opened in 1934",
    ),
    ("The Tarven bridge was painted green.", "answer", 2, "wrong", 2, "bridge", "painted red"),
    (
        "It was the longest bridge of the valley.",
        "answer",
        3,
        "hedged_correct",
        3,
        "bridge",
        "longest bridge of the valley",
    ),
)
ITEMS = ("consistent", "missing", "contradictory")


def words(text: str) -> tuple[tuple[int, int], ...]:
    """Split a text without sampled tokens into words, punctuation and tags.

    A token includes the white space before it.
    """
    spans = [match.span() for match in re.finditer(r"\s*(?:</?\w+>|\w+|[^\w\s])", text)]
    if spans:
        spans[-1] = (spans[-1][0], len(text))
    return tuple(spans)


def worked_example() -> Feedback:
    """Return an answer with a correct crucial claim, a wrong minor one and a hedged one.

    The thinking has one correct claim. The row has no rewards: `rescore` it. RLFH by hand with the
    paper's constants: the truth of the answer's claims gives 1·1.2 − 2·1.0 + 0.5·1.1 = −0.25; the
    information of its two sentences gives ln(1 + 1.2 + 1.0) + ln(1 + 1.1) = 1.9051; together
    1.6551.
    """
    spans = sentences(ANSWER)
    response = Response(
        "tarven/0", QUESTION, ANSWER, group="tarven", offsets=words(ANSWER), source="words"
    )
    claims = [Claim(number, row[0], row[1], row[2]) for number, row in enumerate(CLAIMS)]
    facts = [
        Verdict(
            f"claim:{number}",
            "fact",
            label,
            float("correct" in label),
            rating,
            (_evidence(passage, quote),),
            "example",
        )
        for number, (_, _, _, label, rating, passage, quote) in enumerate(CLAIMS)
    ]
    items = [
        Verdict(f"item:{number}", "checklist", label, by="example")
        for number, label in enumerate(ITEMS)
    ]
    outcome = Verdict("outcome", "answer", "correct", by="example")
    return Feedback(response, spans, locate(ANSWER, spans, claims), (*facts, *items, outcome))


def _evidence(passage: str, quote: str) -> dict[str, object]:
    text = next(p.text for p in QUESTION.passages if p.id == passage)
    start = text.index(quote)
    return {"passage": passage, "span": [start, start + len(quote)]}
