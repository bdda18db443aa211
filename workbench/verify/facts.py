"""Claims against passages: one of five labels each, and how informative each is (RLFH, arXiv
2406.12221, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.judge import render
from workbench.knowledge import Search
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
)
from workbench.verify.ask import ask, name, read, split, total
from workbench.verify.claims import HEDGED, is_hedged, open_claims, retrieve, searched, unfound
from workbench.verify.evidence import cite


def facts(
    judge: Judge, search: Search | None = None, k: int = 5, informativeness: bool = True
) -> Verify:
    """Aspect "fact": every claim is verified in a call of its own against its passages, and all
    claims of a response are rated in one more.

    The passages are the `k` best of the question's own if it has any, else of those that
    `search` finds for the claim in the pages that its title names. The judge says correct, vague
    or wrong; a hedged sentence turns the first and the last into the hedged labels. A claim
    without passages is a failure of stage "retrieve"; one that shares no word with any passage
    of the store is vague, and nobody is asked. A claim that was judged as it was extracted is
    not asked about again. Where the rating fails, the labels stand and a failed verdict on the
    response, "informativeness", says why there is none.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        rows = [
            _Row(response, extraction, open_claims(extraction)) for response, extraction in batch
        ]
        pairs = [(row, claim) for row in rows for claim in row.claims]
        passages = retrieve([(row.response, claim) for row, claim in pairs], search, k)
        for (row, claim), retrieved in zip(pairs, passages, strict=True):
            row.passages[claim.id] = retrieved
        replies = ask(judge, [list(row.prompts(informativeness)) for row in rows])
        return [
            _checked(row, answers, name(judge), informativeness)
            for row, answers in zip(rows, replies, strict=True)
        ]

    return verify


@dataclass
class _Row:
    """A response, the claims that are still to be judged, and what was retrieved for each."""

    response: Response
    extraction: Claims
    claims: tuple[Claim, ...]
    passages: dict[int, Sequence[Passage] | Failure] = field(default_factory=dict)  # by claim id

    def prompts(self, informativeness: bool) -> Iterator[Prompt]:
        """One for each claim that has passages, then the one about them all."""
        question = self.response.question.text
        for claim in self.claims:
            if (passages := self.passages[claim.id]) and not isinstance(passages, Failure):
                yield render("verify", question=question, claims=[claim.text], passages=passages)
        if informativeness and self.claims:
            texts = [claim.text for claim in self.claims]
            yield render("inform", question=question, response=self.response.text, claims=texts)


def _checked(row: _Row, replies: Sequence[Reply], by: str, informativeness: bool) -> Checked:
    if not row.claims:
        return Checked()
    rating = _ratings(row, replies[-1]) if informativeness else {}
    answers = iter(replies)
    verdicts = [_verdict(row, claim, answers, by) for claim in row.claims]
    if isinstance(rating, Failure):
        verdicts.append(Verdict("response", "informativeness", by=by, error=rating))
    else:
        verdicts = [
            replace(verdict, informativeness=rating.get(verdict.target)) for verdict in verdicts
        ]
    return Checked(tuple(verdicts), total(replies), searched(row.response, row.passages.values()))


def _verdict(row: _Row, claim: Claim, replies: Iterator[Reply], by: str) -> Verdict:
    target, passages = f"claim:{claim.id}", row.passages[claim.id]
    if isinstance(passages, Failure):
        return Verdict(target, "fact", by=by, error=passages)
    if not passages:
        return unfound(Verdict(target, "fact", by="rule"))
    label, error = split(read("verify", next(replies)))
    if label and is_hedged(row.response, row.extraction, claim):
        label = HEDGED.get(label, label)
    return Verdict(
        target,
        "fact",
        label,
        evidence=cite(claim.text, passages) if label else (),
        by=by,
        error=error,
    )


def _ratings(row: _Row, reply: Reply) -> Mapping[str, int] | Failure:
    ratings = read("inform", reply, len(row.claims))
    if isinstance(ratings, Failure):
        return ratings
    return {f"claim:{claim.id}": rating for claim, rating in zip(row.claims, ratings, strict=True)}
