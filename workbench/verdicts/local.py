"""`local_facts`: every claim against its passages by the local verifier, without a language
model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.retrieval import Search
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
from workbench.util.failures import unparsed
from workbench.verdicts.claims import HEDGED, cite, is_hedged, open_claims, retrieve, searched
from workbench.verifier.verifier import Entailment, Unsupported, Verifier

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
    passages say it. Where a rule objects (`workbench.verifier.mentions`), it is capped below
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
        asked = [
            (number, claim)
            for number, (_, extraction) in enumerate(batch)
            for claim in open_claims(extraction)
        ]
        responses = [batch[number][0] for number, _ in asked]
        claims = [claim for _, claim in asked]
        passages = retrieve(list(zip(responses, claims, strict=True)), search, k, narrow=False)
        ruled = list(map(_unread, responses, claims, passages))
        pairs = [
            (claim.text, retrieved)
            for claim, retrieved, verdict in zip(claims, passages, ruled, strict=True)
            if verdict is None and not isinstance(retrieved, Failure)
        ]
        checks = zip((retrieved for _, retrieved in pairs), verifier.check_all(pairs), strict=True)
        ratings = [informativeness(found.claims, one.question.text) for one, found in batch]
        rows: list[list[Verdict]] = [[] for _ in batch]
        lists: list[list[Sequence[Passage] | Failure]] = [[] for _ in batch]
        for (number, claim), retrieved, verdict in zip(asked, passages, ruled, strict=True):
            if verdict is None:
                verdict = _verdict(verifier, claim, *next(checks), unsupported)
                if is_hedged(*batch[number], claim):
                    label = str(verdict.label)
                    verdict = replace(verdict, label=HEDGED.get(label, label))
                verdict = replace(verdict, informativeness=ratings[number][claim.id])
            rows[number].append(verdict)
            lists[number].append(retrieved)
        cost = Cost(seconds=(time.perf_counter() - start) / max(1, len(batch)))
        return [
            Checked(tuple(verdicts), cost, searched(response, found))
            for (response, _), verdicts, found in zip(batch, rows, lists, strict=True)
        ]

    return verify


def informativeness(claims: Sequence[Claim], question: str) -> dict[int, int]:
    """1–5 for each claim, by its id: a rule in place of RLFH's model, independent of correctness
    *(ours)*.

    1 repeats an earlier claim (at least 80 % of its content words were in one claim before it)
    or has no content words; 5 shares at least half of the question's content words and adds a
    word of its own; 4 shares some of them; 3 follows a claim that does (its sentence or the one
    before); else 2. Content words are lower-cased words without articles, prepositions and the
    like.
    """
    wanted, seen = _content(question), list[frozenset[str]]()
    ratings: dict[int, int] = {}
    near: int | None = None  # the last sentence with a claim on the question
    for claim in claims:
        words = _content(claim.text)
        shared = len(words & wanted) / max(1, len(wanted))
        new = bool(words) and not any(len(words & other) >= 0.8 * len(words) for other in seen)
        seen.append(words)
        if not new:
            rating = 1
        elif shared > 0:
            rating = 5 if shared >= 0.5 and words - wanted else 4
        elif near is not None and claim.sentence is not None and claim.sentence - near <= 1:
            rating = 3
        else:
            rating = 2
        if rating >= 4:
            near = claim.sentence
        ratings[claim.id] = rating
    return ratings


_FOREIGN = Failure(
    "verify",
    "language",
    "the local verifier reads English only: name another judge (--judge URL --model NAME)",
)


def _unread(
    response: Response, claim: Claim, passages: Sequence[Passage] | Failure
) -> Verdict | None:
    """The verdict on a claim that the model cannot read, or has no passages for; else None."""
    target, foreign = f"claim:{claim.id}", _is_foreign(claim.text)
    if foreign and not _is_foreign(response.question.text):
        return unparsed(target, "script", "local")
    failure = _FOREIGN if foreign else passages
    if isinstance(failure, Failure):
        return Verdict(target, "fact", by="local", error=failure)
    return None


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
    claim: Claim,
    passages: Sequence[Passage],
    check: Entailment,
    unsupported: Unsupported,
) -> Verdict:
    remarks: list[Mapping[str, Any]] = [
        {OBJECTION: kind, "text": text} for kind, text in check.objections
    ]
    if not remarks and verifier.is_close(check):
        remarks = [{THRESHOLD: verifier.settings.support}]
    return Verdict(
        f"claim:{claim.id}",
        "fact",
        verifier.label(check, unsupported),
        p=check.support,
        evidence=(*_evidence(claim, passages, check), *remarks),
        by="local",
    )


def _evidence(
    claim: Claim, passages: Sequence[Passage], check: Entailment
) -> tuple[Mapping[str, Any], ...]:
    """The sentence, in the window that decided, that shares most words with the claim; else the
    whole window.
    """
    if check.passage is None or check.span is None:
        return () if passages else ({UNFOUND: "words"},)
    passage, (start, end) = passages[check.passage], check.span
    (citation,) = cite(claim.text, [replace(passage, text=passage.text[start:end])])
    first, last = citation["span"] or (0, end - start)
    return ({"passage": passage.id, "span": (start + first, start + last)},)
