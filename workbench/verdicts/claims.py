"""Common parts of checks that compare claims with passages: retrieval, hedging and citations."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from itertools import chain

from workbench.credit.attribute import words
from workbench.retrieval import Search, from_passages
from workbench.retrieval.evidence import Evidence, find_evidence, given_passages, no_passages
from workbench.text import sentences
from workbench.text.hedging import is_hedged as hedged
from workbench.types import (
    UNFOUND,
    Claim,
    Claims,
    Failure,
    JsonMapping,
    Passage,
    Response,
    Verdict,
)

# labels of claims in hedged sentences; vague stays vague *(ours)*
HEDGED = {"correct": "hedged_correct", "wrong": "hedged_wrong"}


def open_claims(extraction: Claims) -> tuple[Claim, ...]:
    """Return the claims that still need a label.

    Some extractors also label claims. A labelled claim has a verdict with `aspect="fact"` in
    `extraction.verdicts`, and is left out.
    """
    judged = {verdict.target for verdict in extraction.verdicts if verdict.aspect == "fact"}
    return tuple(claim for claim in extraction.claims if f"claim:{claim.id}" not in judged)


def retrieve(
    pairs: Sequence[tuple[Response, Claim]],
    search: Search | None,
    k: int,
    narrow: bool = True,
) -> list[Evidence]:
    """Return the passages to compare with each claim: one list per (response, claim) pair.

    * If the question has passages, the list has the `k` passages most similar to the claim. If
      `narrow` is False, it has all passages of the question.
    * Otherwise, it has the `k` best results of `search`. If the question has a title, only pages
      with this title are searched. If it has none, all pages are searched, and the list is empty
      if nothing is found.

    If there is no `search`, no page has the title, or the search fails, the result for the claim is
    a `Failure` instead of a list.
    """
    without_own = [
        (response.question, claim.text)
        for response, claim in pairs
        if not given_passages(response.question)
    ]
    results = iter(find_evidence(search, without_own, k) if search else ())
    passages: list[Evidence] = []
    for response, claim in pairs:
        own = given_passages(response.question)
        if own and narrow and len(own) > k:
            # if no passage shares a word with the claim, use the first ones
            passages.append(_index(own).search([claim.text], k)[0] or own[:k])
        elif own:
            passages.append(own)
        else:
            blank = "only blank" if response.question.passages else "no"
            missing = (
                f"response '{response.id}' has {blank} passages, and no index is named:"
                " give the question passages, or name an index with --store"
            )
            passages.append(next(results, no_passages(missing)))
    return passages


_index = lru_cache(maxsize=128)(from_passages)  # the claims of a question share its passages


def searched(response: Response, retrieved: Iterable[Evidence]) -> tuple[Passage, ...]:
    """Return the passages that a search found for the claims of a response, without duplicates.

    Passages of the question (`Question.passages`) are left out.

    Args:
        response: the response.
        retrieved: for each claim of the response, the result of `retrieve`.
    """
    # the question's passages are already stored with the question
    own = {passage.id for passage in response.question.passages}
    lists = (passages for passages in retrieved if not isinstance(passages, Failure))
    by_id = {passage.id: passage for passage in chain.from_iterable(lists)}
    return tuple(passage for id, passage in by_id.items() if id not in own)


def is_hedged(response: Response, extraction: Claims, claim: Claim) -> bool:
    """Return whether a claim, or its sentence in the response, is hedged, as in "I think …".

    Args:
        response: the response with the claim.
        extraction: the claims and the sentence spans of the response.
        claim: the claim.
    """
    if claim.sentence is None:
        return hedged(claim.text)
    # an extractor often drops the hedge ("I think …") from the claim, so its sentence counts too
    start, end = extraction.sentences[claim.sentence]
    return hedged(response.text[start:end]) or hedged(claim.text)


def unfound(verdict: Verdict) -> Verdict:
    """Return a copy of `verdict` for a claim without passages: label vague, P(true) = 0.

    The evidence is `{"unfound": "words"}`: no passage shares a word with the claim.
    """
    return replace(verdict, label="vague", p=0.0, evidence=({UNFOUND: "words"},))


def cite(claim: str, passages: Sequence[Passage]) -> tuple[JsonMapping, ...]:
    """Return `{"passage": id, "span": (start, end)}` for each passage, as evidence of a verdict.

    The id is that of the passage. The span has the character positions of the sentence that shares
    most words with the claim. It is None if no sentence shares a word.
    """
    claim_words = _words(claim)
    return tuple(
        {"passage": passage.id, "span": _best(claim_words, passage.text)} for passage in passages
    )


def nearest_sentences(claim: str, passages: Sequence[Passage]) -> list[Passage]:
    """Return the three sentences of `passages` that share most words with the claim.

    Each sentence is returned as a copy of its passage, with only this sentence as text.
    """
    words = _words(claim)
    units = (
        (len(words & own), replace(passage, text=passage.text[start:end]))
        for passage in passages
        for start, end, own in _sentences(passage.text)
    )
    return [unit for _, unit in nlargest(3, units, key=lambda pair: pair[0])]


def _best(claim_words: frozenset[str], text: str) -> tuple[int, int] | None:
    # of sentences with equally many shared words, the shortest
    shared, _, start, end = max(
        (
            (len(claim_words & words), start - end, start, end)
            for start, end, words in _sentences(text)
        ),
        default=(0, 0, 0, 0),
    )
    return (start, end) if shared else None


@lru_cache(maxsize=128)  # the claims of a response share passages; texts may be long
def _sentences(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return the sentences of a text as (start, end, words), with character positions."""
    return tuple((start, end, _words(text[start:end])) for start, end in sentences(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(words(text))
