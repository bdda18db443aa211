"""Claim metrics of one response: a value and a weight for each, so that a file's value is a
ratio of sums.

Labels: correct and hedged_correct are supported; wrong and hedged_wrong are incorrect; vague is
neither, and counts as not supported in every precision. What its judge could not read
(`unparsed`) is among the vague or, of unknown names, the wrong ones. With S of n claims
supported:

    FactScore    S/n, averaged over the responses with claims (Min et al. 2023, arXiv 2305.14251,
    section 3)
    penalised    S/n · exp(1 − γ/n) where n < γ (their released scorer; γ = 10)
    precision    S/n, as SAFE (arXiv 2403.18802, section 5) and VeriScore (arXiv 2406.19276,
    section 3.3) have it
    recall@K     min(S/K, 1)
    F1@K         their harmonic mean, 0 where S = 0
    VeriScore    F1@K, K being the median number of claims of a response, over all the files that
    are compared
    off_subject  the share of claims about another subject than the one asked for *(ours)*

FactScore, precision and `correct` are also reported "on subject" *(ours)*: a claim about another
subject then stays among the n and is not supported. So neither padding with what is true of
others nor telling the life of somebody else earns anything, and what is false of others still
costs. Without ratings it is not known what claims are about, and none of these is defined.

Recall and F1 are 0 for a response without claims, and an abstention is one: they are averages
over every response that did not fail (KLCF, appendix A.4.2). FactScore and precision are
undefined there and leave it out *(ours)*. Fact per query and per sentence follow FoRAG (arXiv
2406.13779, section 4.1): a response is factual if all its sentences are, a sentence if all its
claims are supported, and only sentences with claims count *(ours)*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.metrics.rows import Row
from workbench.types import SUPPORTED, WorkbenchError

Term = tuple[float, float]  # what a response adds to a metric's numerator and denominator

ON_SUBJECT = ("off_subject", "correct_on_subject", "factscore_on_subject", "precision_on_subject")
CLAIM_METRICS = (
    "correct",
    "incorrect",
    "vague",
    "unparsed",
    "claims",
    "responded",
    "factscore",
    "factscore_penalised",
    "precision",
    "fact_per_query",
    "fact_per_sentence",
    *ON_SUBJECT,
)


K, GAMMA = 32, 10  # of recall@K and F1@K; the number of claims below which FactScore is penalised


def penalty(n: int) -> float:
    """What multiplies the precision of a response with `n` claims: exp(1 − γ/n) below γ, else 1."""
    return math.exp(1 - GAMMA / n) if 0 < n < GAMMA else 1.0


def recall_at(k: int, supported: int) -> float:
    """min(S/K, 1).

    Raises:
        WorkbenchError: K is not at least 1, or S is below 0.
    """
    if k < 1 or supported < 0:
        raise WorkbenchError(
            f"K is {k} and {supported} claims are supported: K is at least 1, a number of claims at"
            " least 0"
        )
    return min(supported / k, 1.0)


def f1_at(k: int, supported: int, n: int) -> float:
    """The harmonic mean of S/n and min(S/K, 1); 0 where nothing is supported.

    Raises:
        WorkbenchError: as for `recall_at`, or more claims are supported than there are.
    """
    recall = recall_at(k, supported)
    if supported > n:
        raise WorkbenchError(
            f"{supported} of {n} claims are supported: no more can be than there are"
        )
    if not supported:
        return 0.0
    precision = supported / n
    return 2 * precision * recall / (precision + recall)


def median_claims(rows: Iterable[Row]) -> int | None:
    """VeriScore's K: the median number of claims of a response that makes any, the upper one of
    two; None without claims.
    """
    counts = sorted(len(row.labels) for row in rows if row.labels)
    return counts[len(counts) // 2] if counts else None


def claim_terms(row: Row, k: int = K, veriscore_k: int | None = None) -> dict[str, Term]:
    """What one response adds to each claim metric; nothing where it failed or was not judged."""
    if row.state in ("failed", "unverified", "not_judged"):
        return {}
    supported, n = row.supported, len(row.labels)
    terms: dict[str, Term] = {"responded": (float(row.state == "scored"), 1.0)}
    terms[f"recall@{k}"] = (recall_at(k, supported), 1.0)
    terms[f"f1@{k}"] = (f1_at(k, supported, n), 1.0)
    if veriscore_k:
        terms["veriscore"] = (f1_at(veriscore_k, supported, n), 1.0)
    if row.state != "scored":
        return terms
    terms["correct"] = (supported, 1.0)
    terms["incorrect"] = (row.wrong, 1.0)
    terms["claims"] = (n, 1.0)
    terms["vague"] = (row.labels.count("vague"), 1.0)
    terms["unparsed"] = (row.unparsed, 1.0)
    terms["factscore"] = terms["precision"] = (supported / n, 1.0)
    terms["factscore_penalised"] = (penalty(n) * (supported / n), 1.0)
    if (on_subject := row.supported_on_subject) is not None:
        terms["correct_on_subject"] = (on_subject, 1.0)
        terms["off_subject"] = (sum(map(bool, row.off_subject)) / n, 1.0)
        terms["factscore_on_subject"] = terms["precision_on_subject"] = (on_subject / n, 1.0)
    factual = factual_sentences(row)
    terms["fact_per_query"] = (float(all(factual)), 1.0)
    terms["fact_per_sentence"] = (float(sum(factual)), float(len(factual)))
    return terms


def factual_sentences(row: Row) -> list[bool]:
    """For each sentence that makes claims, whether all of them are supported; a claim of no
    known sentence is its own.
    """
    sentences: dict[object, bool] = {}
    for position, (label, sentence) in enumerate(zip(row.labels, row.sentences, strict=True)):
        key = ("claim", position) if sentence is None else sentence
        sentences[key] = sentences.get(key, True) and label in SUPPORTED
    return list(sentences.values())
