"""Metrics of claims: FactScore, precision, recall@K, F1@K, VeriScore and others.

Each metric has a numerator and a denominator per response. Its value for a file is the sum of the
numerators divided by the sum of the denominators. For an average over responses, such as FactScore,
the denominator of a response is 1.

A claim with the label correct or hedged_correct is supported. A claim with the label wrong or
hedged_wrong is incorrect. A vague claim is neither, and counts as not supported in every precision.
A claim that the judge could not read (`unparsed`) is labelled vague or, if it has unknown names,
wrong. For a response with n claims, of which S are supported:

    FactScore    S/n, averaged over the responses with claims (Min et al. 2023, arXiv 2305.14251,
    section 3)
    penalised    S/n · exp(1 − γ/n) where n < γ (the released scorer of FactScore; γ = 10)
    precision    S/n, as in SAFE (arXiv 2403.18802, section 5) and VeriScore (arXiv 2406.19276,
    section 3.3)
    recall@K     min(S/K, 1)
    F1@K         the harmonic mean of precision and recall@K; 0 where S = 0
    VeriScore    F1@K, where K is the median number of claims of a response over all compared files
    off_subject  the share of claims about a subject that the question does not ask for *(ours)*

FactScore, precision and S (`correct`) are also reported "on subject" *(ours)*. A claim about
another subject then counts in n but never as supported. These metrics are undefined if it is not
known which claims are about another subject.

Recall and F1 are averages over all responses whose claims were judged (KLCF, appendix A.4.2). They
are 0 for a response without claims, such as an abstention. FactScore and precision leave out
responses without claims *(ours)*.

The facts per query and per sentence follow FoRAG (arXiv 2406.13779, section 4.1). A sentence is
factual if all its claims are supported. A response is factual if all its sentences are factual.
Only sentences with claims count *(ours)*.
"""

import math
from collections.abc import Iterable
from statistics import median_high

from workbench.metrics.rows import Row
from workbench.types import SUPPORTED

Term = tuple[float, float]  # what one response adds to a metric's numerator and denominator

ON_SUBJECT = ("off_subject", "correct_on_subject", "factscore_on_subject", "precision_on_subject")
# metrics that count claims of a response; the others are shares
COUNTS = ("claims", "correct", "incorrect", "vague", "unparsed", "correct_on_subject")
CLAIM_METRICS = (
    *"factscore factscore_penalised precision responded claims correct incorrect vague".split(),
    *"unparsed fact_per_query fact_per_sentence".split(),
    *ON_SUBJECT,
)


K = 32  # default K of recall@K and F1@K
GAMMA = 10  # FactScore is penalised below this number of claims


def penalty(n: int) -> float:
    """Return FactScore's penalty factor for a response with `n` claims.

    The factor is exp(1 − γ/n) if 0 < n < γ = 10, else 1.
    """
    return math.exp(1 - GAMMA / n) if 0 < n < GAMMA else 1.0


def recall_at(k: int, supported: int) -> float:
    """Return recall@K = min(S/K, 1) of a response with S = `supported` supported claims."""
    return min(supported / k, 1.0)


def f1_at(k: int, supported: int, n: int) -> float:
    """Return F1@K of a response with n claims, of which S = `supported` are supported.

    This is the harmonic mean of the precision S/n and recall@K = min(S/K, 1), or 0 if S is 0.
    """
    assert 0 <= supported <= n, f"{supported} of {n} claims are supported"
    if not supported:
        return 0.0
    precision, recall = supported / n, recall_at(k, supported)
    return 2 * precision * recall / (precision + recall)


def median_claims(rows: Iterable[Row]) -> int | None:
    """Return VeriScore's K, the median number of claims of the responses that have claims.

    If the number of responses is even, the larger of the two middle numbers is returned. Return
    None if no response has claims.
    """
    counts = [len(row.labels) for row in rows if row.labels]
    return median_high(counts) if counts else None


def claim_terms(row: Row, k: int = K, veriscore_k: int | None = None) -> dict[str, Term]:
    """Return one response's terms of the claim metrics: `{metric: (numerator, denominator)}`.

    The value of a metric is the sum of the numerators divided by the sum of the denominators. The
    dict is empty if the claims were not all judged: `row.state` is "failed", "unverified" or
    "not_judged".

    Args:
        k: K of recall@K and F1@K, by default 32.
        veriscore_k: K of VeriScore, such as the result of `median_claims`; None leaves VeriScore
            out.
    """
    if row.state in ("failed", "unverified", "not_judged"):
        return {}
    supported, n = row.supported, len(row.labels)
    values: dict[str, float] = {
        "responded": row.state == "scored",
        f"recall@{k}": recall_at(k, supported),
        f"f1@{k}": f1_at(k, supported, n),
    }
    if veriscore_k:
        values["veriscore"] = f1_at(veriscore_k, supported, n)
    sentences: dict[str, Term] = {}
    if row.state == "scored":
        factual = factual_sentences(row)
        values |= {
            "correct": supported,
            "incorrect": row.wrong,
            "claims": n,
            "vague": row.labels.count("vague"),
            "unparsed": row.unparsed,
            # the papers have two names for this number
            "factscore": supported / n,
            "precision": supported / n,
            "factscore_penalised": penalty(n) * (supported / n),
            "fact_per_query": all(factual),
        }
        if (on_subject := row.supported_on_subject) is not None:
            values |= {
                "correct_on_subject": on_subject,
                "off_subject": sum(map(bool, row.off_subject)) / n,
                "factscore_on_subject": on_subject / n,
                "precision_on_subject": on_subject / n,
            }
        sentences = {"fact_per_sentence": (float(sum(factual)), float(len(factual)))}
    return {name: (float(value), 1.0) for name, value in values.items()} | sentences


def factual_sentences(row: Row) -> list[bool]:
    """Return, for each sentence with claims, whether all its claims are supported.

    A claim without a sentence counts as a sentence of its own.
    """
    sentences: dict[object, bool] = {}
    for position, (label, sentence) in enumerate(zip(row.labels, row.sentences, strict=True)):
        key = ("claim", position) if sentence is None else sentence
        sentences[key] = sentences.get(key, True) and label in SUPPORTED
    return list(sentences.values())
