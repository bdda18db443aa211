"""Use the claims that an input row contains instead of extracting claims."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from workbench.credit.attribute import locate
from workbench.text import section_at, sections, sentences
from workbench.types import Claims, Extract, Failure, Response


def given_or(extract: Extract, *, labels: bool = False) -> Extract:
    """Return an extractor that uses the claims given in the input (`Response.given_claims`).

    For a response without given claims (None), it calls `extract`. Each given claim is located in
    the response, so that its reward can be assigned to a position.

    Args:
        extract: the extractor for responses without given claims.
        labels: True if `extract` also labels the claims (RLFH's single-pass mode). Given claims
            have no labels, so a response with given claims then gets a `Claims.error`.
    """
    place = (lambda _: Claims(error=_UNLABELLED)) if labels else _placed

    def run(responses: Sequence[Response]) -> list[Claims]:
        extracted = iter(extract([one for one in responses if one.given_claims is None]))
        return [next(extracted) if one.given_claims is None else place(one) for one in responses]

    return run


_UNLABELLED = Failure(
    "extract",
    "given_claims",
    "the row has its own claims, but with rlfh.mode=single_pass only extracted claims get labels:"
    " set rlfh.mode=pipeline",
)


def _placed(response: Response) -> Claims:
    """Return the given claims with their sentence, section and span in the response.

    A claim that already has a span keeps it.
    """
    text, spans = response.text, sentences(response.text, response.prefill)
    parts = sections(text, response.prefill)
    claims = []
    for claim in locate(text, spans, response.given_claims or (), response.question.titles):
        if claim.span:
            start = claim.span[0]
            number = bisect_right(spans, start, key=lambda span: span[1])
            claim = replace(claim, sentence=min(number, len(spans) - 1) if spans else None)
            claim = replace(claim, section=section_at(parts, start) or "body")
        claims.append(claim)
    return Claims(spans, tuple(claims))
