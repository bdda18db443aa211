"""Merge claims with the same words into facts (KLCF, arXiv 2509.23765, section 2.2).

The claims are from sampled answers of the base model. The evidence supports a claim (label
`correct` or `hedged_correct`), refutes it (`wrong` or `hedged_wrong`) or does not decide (`vague`).
Claims about another person than the question's are left out *(ours)*. They are not part of the
answer, and training must not learn facts about held-out people.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.methods.lookup import Table, table
from workbench.text import is_abstention
from workbench.types import (
    REFUTED,
    SUPPORTED,
    Claim,
    Feedback,
    Question,
    Verdict,
)
from workbench.util.failures import is_off_subject

LABELS = ("correct", "wrong")  # SUPPORT and REFUTE in the paper


@dataclass(frozen=True)
class Fact:
    """A statement in the samples of one question: all claims with the same words, merged.

    Attributes:
        text: the words of the first of these claims.
        label: "correct" if most of the claims are supported, "wrong" if most are refuted.
        said: number of claims that were merged.
        informativeness: the highest rating of the claims, from 1 to 5. None if no claim was rated.
        plain: whether at least one of the claims is not hedged ("perhaps").
        ids: ids of the facts that the claims state, in the closed world (the generated people and
            places); () for other questions.
    """

    text: str
    label: str
    said: int = 1
    informativeness: int | None = None
    plain: bool = True
    ids: tuple[str, ...] = ()


QuestionFacts = tuple[Question, Sequence[Fact]]  # a question, and the facts of its samples


def key(text: str) -> str:
    """Return a claim in lower case, with single spaces and without "." or "!" at the end."""
    return " ".join(text.split()).casefold().rstrip(".! ")


def facts_of(feedbacks: Iterable[Feedback]) -> tuple[list[Fact], Counter[str]]:
    """Return the facts in the samples of one question, the most frequent first, and counts.

    A fact merges all supported or refuted claims with the same words. Its label is that of the
    majority. If there is no majority, the claims give no fact and are counted once as
    "conflicting". The other counts are numbers of claims:

    * "support", "refute", "not_enough_info": by the label of the claim's verdict
    * "unverified": claims without a verdict, or with a failed one
    * "other_subject": claims about another subject than the question's
    * "empty": claims without words
    """
    counts, mentions = Counter[str](), dict[str, list[tuple[Claim, Verdict]]]()
    for feedback in feedbacks:
        verdicts = table(feedback)
        for claim in feedback.claims:
            verdict = verdicts.get((f"claim:{claim.id}", "fact"))
            kind = _kind(claim, verdict, verdicts)
            counts[kind] += 1
            if verdict is not None and kind in ("support", "refute"):
                mentions.setdefault(key(claim.text), []).append((claim, verdict))
    facts = [fact for group in mentions.values() if (fact := _merged(group))]
    counts["conflicting"] = len(mentions) - len(facts)
    return sorted(facts, key=lambda fact: -fact.said), counts


def _kind(claim: Claim, verdict: Verdict | None, verdicts: Table) -> str:
    if verdict is None or verdict.error is not None or verdict.label is None:
        return "unverified"
    if not key(claim.text):
        return "empty"
    subject = verdicts.get((verdict.target, "subject"))
    if is_off_subject(vars(verdict), vars(subject) if subject else {}):
        return "other_subject"
    if verdict.label in SUPPORTED:
        return "support"
    return "refute" if verdict.label in REFUTED else "not_enough_info"


def _merged(mentions: Sequence[tuple[Claim, Verdict]]) -> Fact | None:
    """Merge claims with the same words into a fact, whose label is that of the majority.

    Return None if as many claims are supported as refuted.
    """
    claims, verdicts = zip(*mentions, strict=True)
    balance = sum(1 if verdict.label in SUPPORTED else -1 for verdict in verdicts)
    if not balance:
        return None
    ratings = [v.informativeness for v in verdicts if v.informativeness is not None]
    ids = dict.fromkeys(
        str(item["fact"]) for verdict in verdicts for item in verdict.evidence if "fact" in item
    )
    return Fact(
        " ".join(claims[0].text.split()),
        LABELS[0] if balance > 0 else LABELS[1],
        len(mentions),
        max(ratings, default=None),
        any(verdict.label in LABELS for verdict in verdicts),  # not "hedged_…"
        tuple(ids),
    )


def count_samples(samples: Sequence[Feedback]) -> dict[str, int]:
    """Return numbers of samples by name. A sample may be counted under several names.

    * "all": all samples
    * "failed": the extraction of claims failed
    * "refused": abstentions without claims
    * "no_claims": other samples without claims
    * "cut_off": samples that reached the token limit
    """
    responses = [s.response for s in samples if not s.claims and s.error is None]
    refused = sum(is_abstention(one.text, prefill=one.prefill) for one in responses)
    return {
        "all": len(samples),
        "failed": sum(sample.error is not None for sample in samples),
        "refused": refused,
        "no_claims": len(responses) - refused,
        "cut_off": sum(sample.response.finish != "stop" for sample in samples),
    }
