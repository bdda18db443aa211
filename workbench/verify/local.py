"""`local_facts`: every claim against its passages by the local verifier, without a language
model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.entailment.verifier import Check, Unsupported, Verifier
from workbench.failures import unparsed
from workbench.knowledge import Search
from workbench.types import (
    OBJECTION,
    THRESHOLD,
    UNFOUND,
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Passage,
    Response,
    Verdict,
    Verify,
)
from workbench.verify.claims import HEDGED, cite, is_hedged, open_claims, retrieve, searched

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a an the of in on at by for to from with and or but is was are were be been being it its he"
    " she they his her their this that these those as which who whom whose what when where why how"
    " did do does has have had not also one i you we".split()
)


def local_facts(
    verifier: Verifier, search: Search | None = None, k: int = 5, unsupported: Unsupported = "vague"
) -> Verify:
    """Aspect "fact": five labels, P(true), informativeness and evidence for each claim, by "local".

    The passages are the question's own, or else the `k` best that `search` finds for the claim
    in the pages that the question's title names. A claim without passages is a failure of stage
    "retrieve"; one that shares no word with any passage of the store is not supported. One that
    is not in Latin letters is vague, with the reason among its evidence: this model reads
    English alone. Where the question is not in Latin letters either, it is a failure of stage
    "verify": then this is not the judge to ask. A claim that was judged as it was extracted is
    not judged again. The verdict's `p`, P(true), is the calibrated p(support): how likely the
    passages say it. Where a rule objects (`workbench.entailment.mentions`), it is capped below
    the threshold, and is then no calibrated probability.

    A claim that no passage supports and none contradicts is "vague", as RLFH names what its
    materials leave open. With `unsupported="wrong"` it is "wrong", as FActScore (arXiv
    2305.14251) counts what its source does not support; then contradiction does not matter, and
    only the narrow band between the thresholds is vague. Metrics that count supported claims
    alone do not depend on this. Claims of a hedged sentence get the hedged labels.

    Informativeness 1–5 is a rule, see `informativeness`; RLFH asks a model.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        start = time.perf_counter()
        numbered = [
            (number, claim)
            for number, (_, extraction) in enumerate(batch)
            for claim in open_claims(extraction)
        ]
        passages = retrieve(
            [(batch[number][0], claim) for number, claim in numbered], search, k, narrow=False
        )
        ruled = [
            _unread(batch[number], claim, retrieved)
            for (number, claim), retrieved in zip(numbered, passages, strict=True)
        ]
        pairs = [
            (claim.text, retrieved)
            for (_, claim), retrieved, verdict in zip(numbered, passages, ruled, strict=True)
            if verdict is None and not isinstance(retrieved, Failure)
        ]
        checks = zip((retrieved for _, retrieved in pairs), verifier.check_all(pairs), strict=True)
        rows: list[list[Verdict]] = [[] for _ in batch]
        for (number, claim), verdict in zip(numbered, ruled, strict=True):
            rows[number].append(
                verdict
                or _verdict(verifier, batch[number], claim, *next(checks), unsupported=unsupported)
            )
        seconds = (time.perf_counter() - start) / max(1, len(batch))
        found: list[list[Sequence[Passage] | Failure]] = [[] for _ in batch]
        for (number, _), retrieved in zip(numbered, passages, strict=True):
            found[number].append(retrieved)
        return [
            Checked(tuple(verdicts), Cost(seconds=seconds), searched(response, lists))
            for (response, _), verdicts, lists in zip(batch, rows, found, strict=True)
        ]

    return verify


def informativeness(claims: Sequence[Claim], question: str) -> dict[int, int]:
    """1–5 for each claim, by its id: a rule in place of RLFH's model, deaf to correctness *(ours)*.

    1 repeats an earlier claim (at least 80 % of its content words were in one claim before it)
    or has no content words; 5 shares at least half of the question's content words and adds a
    word of its own; 4 shares some of them; 3 follows a claim that does (its sentence or the one
    before); else 2. Content words are lower-cased words without articles, prepositions and the
    like.
    """
    wanted = _content(question)
    seen: list[frozenset[str]] = []
    ratings: dict[int, int] = {}
    near: int | None = None  # the last sentence with a claim on the question
    for claim in claims:
        words = _content(claim.text)
        shared = len(words & wanted) / max(1, len(wanted))
        new = bool(words) and not any(len(words & other) >= 0.8 * len(words) for other in seen)
        seen.append(words)
        if not new:
            rating = 1
        elif shared >= 0.5 and words - wanted:
            rating = 5
        elif shared > 0:
            rating = 4
        else:
            rating = (
                3
                if near is not None and claim.sentence is not None and claim.sentence - near <= 1
                else 2
            )
        if rating >= 4:
            near = claim.sentence
        ratings[claim.id] = rating
    return ratings


def _unread(
    row: tuple[Response, Claims], claim: Claim, passages: Sequence[Passage] | Failure
) -> Verdict | None:
    """The verdict on a claim that the model is not asked about, since it cannot read it or has
    nothing to read it against.
    """
    target, foreign = f"claim:{claim.id}", _is_foreign(claim.text)
    if foreign and not _is_foreign(row[0].question.text):
        return unparsed(target, "script", "local")
    failure = _FOREIGN if foreign else passages
    return (
        Verdict(target, "fact", by="local", error=failure) if isinstance(failure, Failure) else None
    )


_FOREIGN = Failure(
    "verify",
    "language",
    "the local verifier reads English alone: name another judge (--judge URL --model NAME)",
)


def _is_foreign(text: str) -> bool:
    """Whether a text cannot be read here; it is told by its letters, so that French passes for
    English.
    """
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter < "\u0250" for letter in letters) < len(letters)


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.lower()) if word not in _COMMON)


def _verdict(
    verifier: Verifier,
    row: tuple[Response, Claims],
    claim: Claim,
    passages: Sequence[Passage],
    check: Check,
    unsupported: Unsupported,
) -> Verdict:
    label = verifier.label(check, unsupported)
    if is_hedged(*row, claim):
        label = HEDGED.get(label, label)
    rating = informativeness(row[1].claims, row[0].question.text)[claim.id]
    evidence = (*_evidence(claim, passages, check), *_remarks(verifier, check))
    return Verdict(
        f"claim:{claim.id}",
        "fact",
        label,
        p=check.support,
        informativeness=rating,
        evidence=evidence,
        by="local",
    )


def _remarks(verifier: Verifier, check: Check) -> Iterator[Mapping[str, Any]]:
    """What speaks against the claim; else the threshold, where P(true) is close to it."""
    yield from ({OBJECTION: kind, "text": text} for kind, text in check.objections)
    if not check.objections and verifier.is_close(check):
        yield {THRESHOLD: verifier.settings.support}


def _evidence(
    claim: Claim, passages: Sequence[Passage], check: Check
) -> tuple[Mapping[str, Any], ...]:
    """The sentence, in the window that decided, that shares most words with the claim; else the
    whole window.
    """
    if check.passage is None or check.span is None:
        return () if passages else ({UNFOUND: "words"},)
    passage, (start, end) = passages[check.passage], check.span
    (citation,) = cite(claim.text, [replace(passage, text=passage.text[start:end])])
    sentence = citation["span"]
    return (
        {
            "passage": passage.id,
            "span": (start + sentence[0], start + sentence[1]) if sentence else (start, end),
        },
    )
