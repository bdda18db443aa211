"""Extract claims with a judge: one request per response, all requests of a batch in one call."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from workbench.claims.statements import makes_claims
from workbench.credit.attribute import THRESHOLD, find_sentence, locate
from workbench.judge import read_reply, render
from workbench.retrieval import Search
from workbench.retrieval.evidence import Evidence, find_evidence, given_passages
from workbench.text.sections import Section, section_at, sections
from workbench.text.sentences import sentences
from workbench.types import (
    Claim,
    Claims,
    Extract,
    Failure,
    JsonMapping,
    Judge,
    Response,
    Span,
    Verdict,
)

PASSAGES = 5  # number of passages that a search returns for a response


def judged(judge: Judge) -> Extract:
    """Return an extractor that asks a judge for the claims, as in RLFH's pipeline mode.

    Source: arXiv 2406.12221, section 3.1.1. The judge quotes sentences of the response, and lists
    the claims of each quotation. It does not label them; this is a later step.

    * A claim belongs to the quoted sentence. If a quotation spans several sentences, the claim
      belongs to the sentence that contains most of its words.
    * An inexact quotation is accepted if at least half of it occurs, as one string, in the
      response. Claims of a quotation that is not accepted have no sentence and no span.
    * Quotations of questions, refusals, opinions and plans yield no claims.
    * A response that states nothing is not sent to the judge.

    If a request fails or its reply cannot be parsed, `Claims.error` is set for this response, but
    not for the other responses of the batch.
    """
    return _extractor(judge, "extract")


def single_pass(judge: Judge, search: Search | None = None) -> Extract:
    """Return the extractor of RLFH's single-pass mode: one reply contains claims and their labels.

    Each claim gets a verdict with `aspect="fact"`, a label from "correct" to "wrong", and an
    informativeness from 1 to 5. If the search fails, or no page has the title of the question,
    `Claims.error` is set and no request is sent.

    Args:
        judge: the language model that extracts and labels the claims.
        search: function that finds passages for questions without passages; None for no search.
    """
    return _extractor(judge, "single_pass", search)


def _extractor(judge: Judge, task: str, search: Search | None = None) -> Extract:
    rated = task == "single_pass"

    def extract(responses: Sequence[Response]) -> list[Claims]:
        spans = [sentences(response.text, response.prefill) for response in responses]
        indices = [
            n
            for n, response in enumerate(responses)
            if any(makes_claims(response.text[a:b]) for a, b in spans[n])
        ]
        passages = dict[int, Evidence]()
        if rated:
            evidence = _evidence(search, [responses[n] for n in indices])
            passages.update(zip(indices, evidence, strict=True))
        extractions = [Claims(span) for span in spans]
        prompts = {}
        for n in indices:
            own = passages.get(n, ())
            if isinstance(own, Failure):
                extractions[n] = Claims(spans[n], error=own)
            else:
                prompts[n] = render(
                    task,
                    question=responses[n].question.text,
                    response=responses[n].text,
                    passages=own or None,
                )
        replies = judge([*prompts.values()]) if prompts else []
        assert len(replies) == len(prompts), (len(replies), len(prompts))
        for n, reply in zip(prompts, replies, strict=True):
            value = read_reply(task, reply)
            if isinstance(value, Failure):
                extractions[n] = Claims(spans[n], error=value, cost=reply.cost)
            else:
                claims = _attach(responses[n], spans[n], value["sentences"], rated)
                extractions[n] = Claims(spans[n], *claims, cost=reply.cost)
        return extractions

    return extract


def _evidence(search: Search | None, responses: Sequence[Response]) -> list[Evidence]:
    """Return the passages for each response: those of its question, else those found by `search`.

    If the search fails or finds no page with the question's title, the result is a `Failure`.
    Without a search, the list of a question without passages is empty.
    """
    own = [given_passages(response.question) for response in responses]
    bare = [
        (response.question, response.text)
        for response, passages in zip(responses, own, strict=True)
        if not passages
    ]
    found = iter(find_evidence(search, bare, PASSAGES) if search else ())
    return [passages or next(found, ()) for passages in own]


def _attach(
    response: Response, spans: Sequence[Span], quoted: Sequence[JsonMapping], rated: bool
) -> tuple[tuple[Claim, ...], tuple[Verdict, ...]]:
    """Return the claims of a judge's reply in order, and their verdicts.

    Args:
        spans: the sentences of the response.
        quoted: the quotations of the reply, `{"text": …, "claims": […]}`.
        rated: True if the reply has a label and an informativeness for each claim. If False, there
            are no verdicts.
    """
    text, parts = response.text, sections(response.text, response.prefill)
    claims: list[Claim] = []
    verdicts: list[Verdict] = []
    after = 0
    for quote in quoted:
        covered, after = _covered(text, spans, quote["text"], after)
        stating = [n for n in covered or () if makes_claims(text[slice(*spans[n])])]
        if covered is not None and not stating:
            continue  # a question, a refusal, a plan
        drafts: list[Claim] = []
        for number, item in enumerate(quote["claims"], len(claims)):
            drafts.append(Claim(number, item["text"] if rated else item))
            if rated:
                label, rating = item["label"], item["informativeness"]
                verdicts.append(Verdict(f"claim:{number}", "fact", label, None, rating, by="judge"))
        claims += _placed(response, spans, parts, stating, drafts)
    return tuple(claims), tuple(verdicts)


def _covered(
    text: str, spans: Sequence[Span], quote: str, after: int
) -> tuple[list[int] | None, int]:
    """Return the indices of the sentences that a quotation covers, and the next value of `after`.

    The indices are None if the quotation is not found. The search for an exact quotation starts at
    `after`, so the second quotation of a repeated sentence is located at its second occurrence.
    """
    match = find_sentence(text, quote, after)
    if match and match[2] == 1:
        after = match[1]
    else:
        match = find_sentence(text, quote)  # out of order, or not word for word
    if not match or match[2] < THRESHOLD:
        return None, after
    first = bisect_right(spans, match[0], key=lambda span: span[1])
    return list(range(first, bisect_left(spans, match[1], key=lambda span: span[0]))), after


def _placed(
    response: Response,
    spans: Sequence[Span],
    parts: Sequence[Section],
    numbers: Sequence[int],
    drafts: Sequence[Claim],
) -> list[Claim]:
    """Return the claims of one quotation, each located in one of the sentences that it covers.

    Args:
        numbers: indices of these sentences; if empty, the claims get no span.
        drafts: the claims, not located yet.
    """
    if not numbers:
        only = {section for section, _, _ in parts}
        section = only.pop() if len(only) == 1 else "body"
        return [replace(draft, section=section, coverage=0.0) for draft in drafts]
    if len(numbers) == 1:
        drafts = [replace(draft, sentence=0) for draft in drafts]
    placed = []
    quoted = [spans[n] for n in numbers]
    for claim in locate(response.text, quoted, drafts, response.question.titles):
        number = numbers[claim.sentence or 0]
        section = section_at(parts, spans[number][0]) or "body"
        placed.append(replace(claim, sentence=number, section=section))
    return placed
