"""Claims against passages: one of five labels each, and how informative each is (RLFH, arXiv 2406.12221, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.types import (
    Checked,
    Claim,
    Claims,
    Failure,
    Judge,
    Passage,
    Prompt,
    Reply,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)  # fmt: skip
from workbench.verify.ask import ask, name, read, split, total
from workbench.verify.evidence import cite

if TYPE_CHECKING:
    from workbench.knowledge import Search

FACTS = ("correct", "hedged_correct", "vague", "hedged_wrong", "wrong")
HEDGED = {"correct": "hedged_correct", "wrong": "hedged_wrong"}  # of a claim in a hedged sentence; vague stays vague *(ours)*


def facts(judge: Judge, search: Search | None = None, k: int = 5, informativeness: bool = True) -> Verify:
    """Aspect "fact": every claim is verified in a call of its own against its passages, and all claims of a response are
    rated in one more.

    The passages are the `k` best of the question's own if it has any, else of those that `search` finds for the claim in the
    pages that its title names. The judge says correct, vague or wrong; a hedged sentence turns the first and the last
    into the hedged labels. A claim without passages is a failure of stage "retrieve". A claim that was judged as it was
    extracted is not asked about again. Where the rating fails, the labels stand and a failed verdict on the response,
    "informativeness", says why there is none.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rows = [_Row(response, found, _open(found)) for response, found in batch]
        _retrieve(rows, search, k)
        replies = ask(judge, [list(row.prompts(informativeness)) for row in rows])
        return [_checked(row, answers, name(judge), informativeness) for row, answers in zip(rows, replies, strict=True)]

    return verify


@dataclass
class _Row:
    """A response, the claims that are still to be judged, and what was retrieved for each."""

    response: Response
    found: Claims
    claims: tuple[Claim, ...]
    passages: dict[int, Sequence[Passage] | Failure] = field(default_factory=dict)  # by claim id

    def prompts(self, informativeness: bool) -> Iterator[Prompt]:
        """One for each claim that has passages, then the one about them all."""
        from workbench.judge import render

        question = self.response.question.text
        for claim in self.claims:
            if not isinstance(passages := self.passages[claim.id], Failure):
                yield render("verify", question=question, claims=[claim.text], passages=passages)
        if informativeness and self.claims:
            texts = [claim.text for claim in self.claims]
            yield render("inform", question=question, response=self.response.text, claims=texts)


def _open(found: Claims) -> tuple[Claim, ...]:
    """The claims without a verdict on their truth."""
    judged = {verdict.target for verdict in found.verdicts if verdict.aspect == "fact"}
    return tuple(claim for claim in found.claims if f"claim:{claim.id}" not in judged)


def _retrieve(rows: Sequence[_Row], search: Search | None, k: int) -> None:
    """Fill in every claim's passages, with one search for all claims of the batch that need one."""
    needed: list[tuple[_Row, Claim]] = []
    for row in rows:
        given = row.response.question.passages
        if given:
            best = _choose(given, [claim.text for claim in row.claims], k)
            row.passages.update({claim.id: passages for claim, passages in zip(row.claims, best, strict=True)})
            continue
        for claim in row.claims:
            if search:
                needed.append((row, claim))
            else:
                row.passages[claim.id] = _nothing(
                    f"question '{row.response.question.id}' has no passages and there is no store"
                )
    if search and needed:
        titles = [row.response.question.title or None for row, _ in needed]
        try:
            found: Sequence[Sequence[Passage] | Failure] = search([claim.text for _, claim in needed], k, titles=titles)
        except WorkbenchError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # the store's files, or a server behind it
            found = [Failure("retrieve", "search", f"the search failed: {error}")] * len(needed)
        for (row, claim), passages in zip(needed, found, strict=True):
            row.passages[claim.id] = passages or _nothing(f"no passage was found for '{claim.text}'")


def _choose(given: Sequence[Passage], claims: Sequence[str], k: int) -> Sequence[Sequence[Passage]]:
    """Of a question's own passages the `k` that fit each claim best; the first ones where none shares a word with it."""
    from workbench.knowledge import from_passages

    if len(given) <= k:
        return [given] * len(claims)
    return [found or given[:k] for found in from_passages(given).search(claims, k)]


def _nothing(message: str) -> Failure:
    return Failure("retrieve", "no_passages", message)


def _checked(row: _Row, replies: Sequence[Reply], by: str, informativeness: bool) -> Checked:
    if not row.claims:
        return Checked()
    rating = _ratings(row, replies[-1]) if informativeness else {}
    answers = iter(replies)
    verdicts = [_verdict(row, claim, answers, by) for claim in row.claims]
    if isinstance(rating, Failure):
        verdicts.append(Verdict("response", "informativeness", by=by, error=rating))
    else:
        verdicts = [replace(verdict, informativeness=rating.get(verdict.target)) for verdict in verdicts]
    return Checked(tuple(verdicts), total(replies))


def _verdict(row: _Row, claim: Claim, replies: Iterator[Reply], by: str) -> Verdict:
    target, passages = f"claim:{claim.id}", row.passages[claim.id]
    if isinstance(passages, Failure):
        return Verdict(target, "fact", by=by, error=passages)
    label, error = split(read("verify", next(replies)))
    if label and _is_hedged(row, claim):
        label = HEDGED.get(label, label)
    return Verdict(target, "fact", label, evidence=cite(claim.text, passages) if label else (), by=by, error=error)


def _is_hedged(row: _Row, claim: Claim) -> bool:
    from workbench.answers.hedging import is_hedged

    if claim.sentence is None:
        return is_hedged(claim.text)
    start, end = row.found.sentences[claim.sentence]
    return is_hedged(row.response.text[start:end])


def _ratings(row: _Row, reply: Reply) -> Mapping[str, int] | Failure:
    ratings = read("inform", reply, len(row.claims))
    if isinstance(ratings, Failure):
        return ratings
    return {f"claim:{claim.id}": rating for claim, rating in zip(row.claims, ratings, strict=True)}
