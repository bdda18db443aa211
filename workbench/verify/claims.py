"""What every check of claims against passages shares: which claims are open, what is retrieved
for each, which are hedged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from workbench.answers.hedging import is_hedged as hedged
from workbench.knowledge import Search, from_passages
from workbench.types import (
    UNFOUND,
    Claim,
    Claims,
    Failure,
    Passage,
    Response,
    Verdict,
    WorkbenchError,
)

# of a claim in a hedged sentence; vague stays vague *(ours)*
HEDGED = {"correct": "hedged_correct", "wrong": "hedged_wrong"}


def open_claims(found: Claims) -> tuple[Claim, ...]:
    """The claims without a verdict on their truth: what was judged as it was extracted is not
    judged again.
    """
    judged = {verdict.target for verdict in found.verdicts if verdict.aspect == "fact"}
    return tuple(claim for claim in found.claims if f"claim:{claim.id}" not in judged)


def retrieve(
    asked: Sequence[tuple[Response, Claim]],
    search: Search | None = None,
    k: int = 5,
    narrow: bool = True,
) -> list[Sequence[Passage] | Failure]:
    """The passages to check each claim against, or why there are none; all claims that need a
    search share one.

    A question's own passages come first: the `k` of them that fit the claim best, or with
    `narrow=False` all. Else the `k` best that `search` finds in the pages that the question's
    title names. That there is no such page is a failure. That of all pages none shares a word
    with a claim is the claim's own doing: it gets no passages.
    """
    needed = [
        number
        for number, (response, _) in enumerate(asked)
        if search and not response.question.passages
    ]
    passages = (
        dict(zip(needed, _search(search, [asked[number] for number in needed], k), strict=True))
        if search
        else {}
    )
    for own, numbers in _by_passages(asked).items():
        chosen = (
            _choose(own, [asked[number][1].text for number in numbers], k)
            if narrow
            else [own] * len(numbers)
        )
        passages.update(zip(numbers, chosen, strict=True))
    return [
        passages[number] if number in passages else _no_store(response)
        for number, (response, _) in enumerate(asked)
    ]


def searched(
    response: Response, found: Iterable[Sequence[Passage] | Failure]
) -> tuple[Passage, ...]:
    """The passages that are not the question's own, each once."""
    own = {passage.id for passage in response.question.passages}
    lists = [passages for passages in found if not isinstance(passages, Failure)]
    return tuple(
        {one.id: one for passages in lists for one in passages if one.id not in own}.values()
    )


def is_hedged(response: Response, found: Claims, claim: Claim) -> bool:
    """Whether the claim, or the sentence that it was read from, is hedged."""
    if claim.sentence is None:
        return hedged(claim.text)
    start, end = found.sentences[claim.sentence]
    return hedged(response.text[start:end]) or hedged(claim.text)


def _by_passages(pairs: Sequence[tuple[Response, Claim]]) -> dict[tuple[Passage, ...], list[int]]:
    """The claims (by position) that are checked against the same passages of their questions."""
    positions: dict[tuple[Passage, ...], list[int]] = {}
    for number, (response, _) in enumerate(pairs):
        if response.question.passages:
            positions.setdefault(tuple(response.question.passages), []).append(number)
    return positions


def _search(
    search: Search, pairs: Sequence[tuple[Response, Claim]], k: int
) -> Sequence[Sequence[Passage] | Failure]:
    if not pairs:
        return []
    titles = [response.question.title.strip() or None for response, _ in pairs]
    try:
        results = search([claim.text for _, claim in pairs], k, titles=titles)
    except WorkbenchError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # the store's files, or a server behind it
        return [Failure("retrieve", "search", f"the search failed: {error}")] * len(pairs)
    return [
        passages or ([] if title is None else _no_page(title))
        for passages, title in zip(results, titles, strict=True)
    ]


def _choose(
    passages: Sequence[Passage], claims: Sequence[str], k: int
) -> Sequence[Sequence[Passage]]:
    """Of a question's own passages the `k` that fit each claim best; the first ones where none
    shares a word with it.
    """
    if len(passages) <= k:
        return [passages] * len(claims)
    return [best or passages[:k] for best in from_passages(passages).search(claims, k)]


def unfound(verdict: Verdict) -> Verdict:
    """A claim that has nothing to be compared with: the passages leave it open, and P(true) is
    0.
    """
    return replace(verdict, label="vague", p=0.0, evidence=({UNFOUND: "words"},))


def _no_page(title: str) -> Failure:
    return Failure("retrieve", "no_passages", f"there is no page of the title '{title}'")


def _no_store(response: Response) -> Failure:
    message = f"question '{response.question.id}' has no passages and there is no store"
    return Failure("retrieve", "no_passages", message)
