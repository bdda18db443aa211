"""Compare the characters in error with human spans: QA-Feedback, WiCE tokens, HaluEval."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import stats
from benchmarks.human.cache import Remembered
from benchmarks.human.verdicts import FIXED, json_lines, overlap
from workbench.claims import rules
from workbench.credit.attribute import find_sentence
from workbench.pipeline import grade
from workbench.types import Feedback, Passage, Question, Response
from workbench.verdicts.local import local_facts

Span = tuple[int, int]
FACTUAL = ("Wrong-Grounding", "Unverifiable")
WRONG = ("wrong", "hedged_wrong")
UNSUPPORTED = (*WRONG, "vague")
FOUND = 0.8  # least share of a marked text that must be found in the response, if not verbatim


@dataclass(frozen=True)
class Marked:
    response: Response
    spans: tuple[Span, ...]  # human error spans


def qa_feedback(folder: Path, kinds: Sequence[str] = FACTUAL) -> list[Marked]:
    """Return answers to ASQA questions with human error spans and passages (arXiv 2306.01693)."""
    found = []
    for number, row in enumerate(
        json.loads((folder / "qa_feedback" / "dev_feedback.json").read_text(encoding="utf-8"))
    ):
        passages = tuple(
            Passage(str(n), title, " ".join(said))
            for n, (title, *said) in enumerate(row["passages"])
        )
        question = Question(row["question"], row["question"], passages=passages)
        errors = [error for error in row["feedback"]["errors"] if error["error type"] in kinds]
        spans = tuple((error["start"], error["end"]) for error in errors)
        found.append(Marked(Response(f"qa-{number}", question, row["prediction 1"]), spans))
    return found


def wice_tokens(folder: Path) -> list[Marked]:
    """Return Wikipedia claims that a page supports in part, with their unsupported words as spans.

    Source: arXiv 2303.01432.
    """
    found = []
    for row in json_lines(folder / "wice" / "non_supported_tokens.dev.jsonl"):
        passage = Passage("page", "", " ".join(row["evidence"]))
        question = Question(
            row["meta"]["id"], "", title=row["meta"]["claim_title"], passages=(passage,)
        )
        places = token_spans(row["claim"], row["claim_tokens"])
        spans = tuple(
            place
            for place, bad in zip(places, row["non_supported_spans"], strict=True)
            if bad and place
        )
        found.append(Marked(Response(row["meta"]["id"], question, row["claim"]), spans))
    return found


def halueval(folder: Path) -> list[Marked]:
    """Return ChatGPT's answers to instructions (arXiv 2305.11747).

    The only evidence is the instruction itself.
    """
    found = []
    for row in json_lines(folder / "halueval" / "general_data.json"):
        text, query = row["chatgpt_response"], row["user_query"]
        question = Question(row["ID"], query, passages=(Passage("query", "", query),))
        places = [find_sentence(text, quote) for quote in row.get("hallucination_spans") or ()]
        spans = tuple((place[0], place[1]) for place in places if place and place[2] >= FOUND)
        found.append(Marked(Response(row["ID"], question, text), spans))
    return found


def token_spans(text: str, tokens: Sequence[str]) -> list[Span | None]:
    """Return the span of each token, in order; None if the text writes a token in another way."""
    places: list[Span | None] = []
    position = 0
    for token in tokens:
        start = text.find(token, position)
        places.append((start, start + len(token)) if start >= 0 else None)
        position = start + len(token) if start >= 0 else position
    return places


SETS: dict[str, Callable[[Path], list[Marked]]] = {
    "QA-Feedback, factual errors": qa_feedback,
    "WiCE, unsupported words": wice_tokens,
    "HaluEval, query as evidence": halueval,
}


def measure(marked: Sequence[Marked], verifier: Remembered, seed: int) -> dict[str, Any]:
    """Return precision, recall and F1 of the characters in error, over all responses together.

    White space is left out. `claims` takes the matched text of unsupported claims, `sentences`
    their whole sentences; with `contradicted`, only of claims that the evidence contradicts.

    `auroc` needs no threshold: it is how often a marked character is more suspicious than another
    one (see `suspicion`).
    """
    rows = grade([local_facts(verifier)], {}, rules())([one.response for one in marked])
    gold = [mask(one.response.text, one.spans) for one in marked]
    said: dict[str, list[np.ndarray]] = {
        "claims": [taken(row, claim_spans(row, UNSUPPORTED)) for row in rows],
        "claims, contradicted": [taken(row, claim_spans(row, WRONG)) for row in rows],
        "sentences": [taken(row, sentence_spans(row, UNSUPPORTED)) for row in rows],
        "sentences, contradicted": [taken(row, sentence_spans(row, WRONG)) for row in rows],
        "word overlap": [taken(row, lexical(row)) for row in rows],
        "everything": [taken(row, [(0, len(row.response.text))]) for row in rows],
    }
    groups = [one.response.question.id for one in marked]
    return {
        "n": len(marked),
        "marked": sum(bool(g.any()) for g in gold),
        "spans": sum(len(one.spans) for one in marked),
        "claims": sum(len(row.claims) for row in rows),
        "share_of_characters": round(
            sum(int(g.sum()) for g in gold) / max(1, sum(map(visible, marked))), 4
        ),
        "auroc": stats.interval(_auroc(rows, gold), groups, seed),
        **{name: _score(masks, gold, groups, seed) for name, masks in said.items()},
    }


def visible(one: Marked) -> int:
    return len(re.sub(r"\s", "", one.response.text))


def mask(text: str, spans: Iterable[Span]) -> np.ndarray:
    """Return a truth value for each character of `text`; white space is never marked."""
    found = np.zeros(len(text), dtype=bool)
    for start, end in spans:
        found[start:end] = True
    return found & np.array([not letter.isspace() for letter in text], dtype=bool)


def taken(row: Feedback, spans: Iterable[Span]) -> np.ndarray:
    return mask(row.response.text, spans)


def _bad(row: Feedback, labels: Sequence[str]) -> list[int]:
    verdicts = [row.verdict(f"claim:{claim.id}", "fact") for claim in row.claims]
    return [
        number for number, verdict in enumerate(verdicts) if verdict and verdict.label in labels
    ]


def claim_spans(row: Feedback, labels: Sequence[str]) -> list[Span]:
    return [span for number in _bad(row, labels) if (span := row.claims[number].span)]


def sentence_spans(row: Feedback, labels: Sequence[str]) -> list[Span]:
    numbers = {row.claims[number].sentence for number in _bad(row, labels)}
    return [row.sentences[number] for number in numbers if number is not None]


def lexical(row: Feedback) -> list[Span]:
    """Return the claims with a smaller share of words in the passages than `FIXED`."""
    passages = row.response.question.passages
    return [
        claim.span for claim in row.claims if claim.span and overlap(claim.text, passages) < FIXED
    ]


def suspicion(row: Feedback) -> np.ndarray:
    """Return 1 − p(support) of the least supported claim on each character, 0 outside claims."""
    found = np.zeros(len(row.response.text))
    for claim in row.claims:
        verdict = row.verdict(f"claim:{claim.id}", "fact")
        if claim.span and verdict and verdict.p is not None:
            place = slice(*claim.span)
            found[place] = np.maximum(found[place], 1 - verdict.p)
    return found


def _auroc(rows: Sequence[Feedback], gold: Sequence[np.ndarray]) -> stats.Statistic:
    """Return the AUROC over all characters.

    Equal characters of a response (same suspicion, same mark) form one weighted cell.
    """
    cells: list[tuple[float, bool, int, int]] = []  # suspicion, marked, response, characters
    for number, (row, marked) in enumerate(zip(rows, gold, strict=True)):
        seen = np.array([not letter.isspace() for letter in row.response.text], dtype=bool)
        pairs = np.stack([suspicion(row)[seen], marked[seen]], axis=1)
        for (score, bad), count in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
            cells.append((score, bool(bad), number, int(count)))
    score, bad, member, count = (np.array(column) for column in zip(*cells, strict=True))
    over_cells = stats.auroc(bad, score)
    return lambda weights: over_cells(weights[member] * count)


def _score(
    said: Sequence[np.ndarray], gold: Sequence[np.ndarray], groups: Sequence[str], seed: int
) -> dict[str, Any]:
    hit = np.array([float((a & b).sum()) for a, b in zip(said, gold, strict=True)])
    sizes = [np.array([float(one.sum()) for one in masks]) for masks in (said, gold)]
    measured = stats.precision_recall_f1(hit, *sizes)
    return {name: stats.interval(statistic, groups, seed) for name, statistic in measured.items()}
