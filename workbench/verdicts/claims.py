"""What all checks of claims against passages share: which claims are open, what is retrieved for
each, which are hedged, and where a passage supports a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from workbench.retrieval import Search, from_passages
from workbench.retrieval.in_memory import InMemoryIndex
from workbench.text import sentences
from workbench.text.hedging import is_hedged as hedged
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
    unlinked = [pair for pair in asked if not pair[0].question.passages]
    results = iter(_search(search, unlinked, k) if search and unlinked else ())
    found: list[Sequence[Passage] | Failure] = []
    for response, claim in asked:
        own = tuple(response.question.passages)
        if own and narrow and len(own) > k:
            # the first ones where no passage shares a word with the claim
            found.append(_given(own).search([claim.text], k)[0] or own[:k])
        elif own:
            found.append(own)
        else:
            missing = f"question '{response.question.id}' has no passages and there is no store"
            found.append(next(results, _no_passages(missing)))
    return found


@lru_cache(maxsize=128)
def _given(passages: tuple[Passage, ...]) -> InMemoryIndex:
    return from_passages(passages)


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


def _search(
    search: Search, pairs: Sequence[tuple[Response, Claim]], k: int
) -> Sequence[Sequence[Passage] | Failure]:
    titles = [response.question.title.strip() or None for response, _ in pairs]
    try:
        results = search([claim.text for _, claim in pairs], k, titles=titles)
    except WorkbenchError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # the store's files, or a server behind it
        return [Failure("retrieve", "search", f"the search failed: {error}")] * len(pairs)
    return [
        passages
        or ([] if title is None else _no_passages(f"there is no page of the title '{title}'"))
        for passages, title in zip(results, titles, strict=True)
    ]


def unfound(verdict: Verdict) -> Verdict:
    """A claim that has nothing to be compared with: the passages leave it open, and P(true) is
    0.
    """
    return replace(verdict, label="vague", p=0.0, evidence=({UNFOUND: "words"},))


def _no_passages(message: str) -> Failure:
    return Failure("retrieve", "no_passages", message)


_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def cite(claim: str, passages: Sequence[Passage]) -> tuple[Mapping[str, Any], ...]:
    """For each passage `{passage, span}`: its sentence that shares most words with the claim;
    span None if none shares any.
    """
    wanted = _words(claim)
    return tuple(
        {"passage": passage.id, "span": _best(wanted, passage.text)} for passage in passages
    )


def _best(wanted: frozenset[str], text: str) -> tuple[int, int] | None:
    scored = [
        (len(wanted & words), -(end - start), start, end) for start, end, words in _sentences(text)
    ]
    if not scored or max(scored)[0] == 0:
        return None
    return max(scored)[2:]


@lru_cache(maxsize=128)  # texts may be long
def _sentences(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Sentences with their words. Cached: all claims of a response are often held against the
    same passages.
    """
    return tuple((start, end, _words(text[start:end])) for start, end in sentences(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))
