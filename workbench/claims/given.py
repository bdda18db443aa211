"""Use the claims that an input row contains instead of extracting claims."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from workbench.credit.attribute import locate
from workbench.text import section_at, sections, sentences
from workbench.types import Claim, Claims, Extract, Failure, Response, Spans


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
    spans = sentences(response.text, response.prefill)
    return Claims(spans, located(response, spans, response.given_claims or ()))


def located(response: Response, spans: Spans, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return claims with their span, sentence, section and end in the response.

    A span, a sentence, and the end of a claim with a span are kept if the claim already has them.
    So is a section, except "body", which may only be the default.

    Args:
        spans: the span of each sentence.
    """
    parts, placed = sections(response.text, response.prefill), []
    for claim in locate(response.text, spans, claims, response.question.titles):
        if claim.span:
            start, end = claim.span
            number = claim.sentence
            if number is None and spans:
                number = bisect_right(spans[:-1], start, key=lambda span: span[1])
            section = section_at(parts, start) if claim.section == "body" else claim.section
            claim = replace(claim, sentence=number, section=section or "body")
            claim = replace(claim, end=end if claim.end is None else claim.end)
        placed.append(claim)
    return tuple(placed)
