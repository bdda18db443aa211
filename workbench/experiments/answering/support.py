"""Convert a judged answer to sentences with their sources and support *(ours)*.

The sources of a sentence are the first of these that exist:

1. the passages that the sentence cites;
2. the passages that the plan ("[Outline] …") cites for the subjects of the sentence;
3. the passages in which the judge found support for the sentence's claims.

A sentence gets the label and the probability of its worst claim. Both are None if the sentence has
no claim, or if the judge failed on one of its claims.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from workbench.metrics.facets import about, cited_numbers, supporting_passages
from workbench.text import answer_sections, section_at, sections, sentences
from workbench.text.outline import read_outline, read_plan, uncited
from workbench.types import (
    CLAIM_LABELS,
    Claim,
    Feedback,
    JsonObject,
    Passage,
    Response,
    Span,
    Verdict,
)

NOTHING_WRITTEN = "the policy wrote nothing"
NO_PLAN = "the answer has no plan ([Structure] … [Outline] … [Answer] …) and is shown unchanged"
NO_ANSWER = "there is no answer: an unfinished plan or thought states nothing"


@dataclass(frozen=True)
class Sentence:
    """One sentence of an answer.

    Attributes:
        passages: ids of the sentence's sources. These are the cited passages; without citations
            (`cited`), they are the passages with support (`found`).
        label: label of the sentence's worst claim, from "correct" to "wrong"; None if the sentence
            has no claim, or if a check failed.
        p: probability that the worst claim is true; None if unknown.
        cited: numbers of the passages that the sentence cites, such as 2 for "… [2]". A sentence
            without a citation gets the numbers that the outline cites for the sentence's subject. A
            number may be wrong: no passage may have it.
        found: ids of the passages that support the sentence's claims, according to the judge.
        error: why the sentence could not be judged; None if no check failed.
    """

    text: str
    passages: tuple[str, ...] = ()
    label: str | None = None
    p: float | None = None
    cited: tuple[int, ...] = ()
    found: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Answer:
    """A policy's answer from passages, split into sentences with their sources.

    Attributes:
        structure: the part "[Structure] …" of the response; None without this part.
        outline: the points of the part "[Outline] …", such as "the river [2]"; () without this
            part.
        sentences: the sentences of the answer, without the plan and the thinking before it.
        passages: the passages in the prompt. Citations number them from 1.
        text: the whole response.
        notes: remarks for the reader, for example that the answer was cut off.
        judge: name of the judge of the sentences.
    """

    question: str
    structure: str | None = None
    outline: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    passages: tuple[Passage, ...] = ()
    text: str = ""
    notes: tuple[str, ...] = ()
    judge: str | None = None

    @property
    def failed(self) -> int:
        """The number of sentences that could not be judged."""
        return sum(sentence.error is not None for sentence in self.sentences)

    def to_row(self) -> JsonObject:
        """Return the answer as a JSON object; docs/formats.md describes it."""
        return {**asdict(self), "failed": self.failed}


def supported(feedback: Feedback, notes: Sequence[str] = ()) -> Answer:
    """Convert a response with judged claims to an `Answer`.

    Args:
        feedback: the response with its claims. The label of each sentence comes from their verdicts
            with the aspect "fact".
        notes: remarks for the reader. The function adds its own, for example if the answer was cut
            off.
    """
    response = feedback.response
    structure, outline = read_plan(response.text) or (None, ())
    spans = _spans(response)
    claims = _by_span(feedback, spans)
    judged = tuple(_sentences(feedback, spans, claims))
    unplaced = len(feedback.claims) - sum(map(len, claims.values()))
    judges = (verdict.by for verdict in feedback.verdicts if verdict.aspect == "fact")
    return Answer(
        response.question.text,
        structure,
        outline,
        judged,
        response.question.passages,
        response.text.strip(),
        (*notes, *_notes(response, judged, structure, unplaced)),
        next(filter(None, judges), None),
    )


def _spans(response: Response) -> list[Span]:
    """Return the spans of the answer's sentences, without thinking and plan.

    A citation after a full stop does not begin a new sentence.
    """
    text, prefill = response.text, response.prefill
    parts, wanted = sections(text, prefill), answer_sections(text, prefill)
    return [
        span for span in sentences(uncited(text), prefill) if section_at(parts, span[0]) in wanted
    ]


def _by_span(feedback: Feedback, spans: Sequence[Span]) -> dict[Span, list[Claim]]:
    """Return the claims of each sentence: span of the sentence -> claims.

    A claim belongs to the span that contains the start of its sentence in `feedback`. A claim
    without such a sentence belongs to the span that contains its own start.
    """
    claims: dict[Span, list[Claim]] = {span: [] for span in spans}
    for claim in feedback.claims:
        start, _ = claim.span or (-1, -1)
        if claim.sentence is not None:
            start, _ = feedback.sentences[claim.sentence]
        for span in spans:
            if span[0] <= start < span[1]:
                claims[span].append(claim)
    return claims


def _sentences(
    feedback: Feedback,
    spans: Sequence[Span],
    claims: Mapping[Span, Sequence[Claim]],
) -> Iterator[Sentence]:
    response, passages = feedback.response, feedback.response.question.passages
    plan, names = read_outline(response.text), _facets(response)
    for (start, end), (following, _) in pairwise([*spans, (len(response.text), 0)]):
        text, own = response.text[start:end], claims[start, end]
        facts = (feedback.verdict(f"claim:{claim.id}", "fact") for claim in own)
        verdicts = [fact for fact in facts if fact]
        facets = [name for claim in own for name in about(claim.text, names)] or about(text, names)
        # up to the next sentence, because a citation may stand after the full stop
        cited = cited_numbers(response.text[start:following], plan, facets)
        supporting = {passage for verdict in verdicts for passage in supporting_passages(verdict)}
        matching = [passage.id for passage in passages if passage.id in supporting]
        numbers = [number for number in cited if 0 < number <= len(passages)]
        sources = [passages[number - 1].id for number in numbers] if cited else matching
        failure = feedback.error or next(
            (verdict.error for verdict in verdicts if verdict.error), None
        )
        label, p = (None, None) if failure else _worst(verdicts)
        yield Sentence(
            text,
            tuple(sources),
            label,
            p,
            tuple(cited),
            tuple(matching),
            failure.message if failure else None,
        )


def _facets(response: Response) -> Collection[str]:
    """Return the subjects in the question's title or, without a title, its passages' titles."""
    question = response.question
    return question.titles or {page.title.strip() for page in question.passages} - {""}


def _worst(verdicts: Sequence[Verdict]) -> tuple[str | None, float | None]:
    judged = [verdict for verdict in verdicts if verdict.label in CLAIM_LABELS]
    if not judged:
        return None, None
    worst = max(
        judged, key=lambda verdict: (CLAIM_LABELS.index(verdict.label or ""), -(verdict.p or 0.0))
    )
    return worst.label, worst.p


def _notes(
    response: Response, judged: Sequence[Sentence], structure: str | None, unplaced: int
) -> Iterator[str]:
    count = len(response.question.passages)
    if not response.text.strip():
        yield NOTHING_WRITTEN
    elif structure is None:
        yield NO_PLAN
        if not judged:
            yield NO_ANSWER
    if response.finish == "length":
        yield f"the answer was cut off after {len(response.token_ids)} tokens"
    if wrong := sorted(
        {number for sentence in judged for number in sentence.cited if not 0 < number <= count}
    ):
        yield (
            f"{', '.join(f'[{number}]' for number in wrong)} is cited, but the passages are"
            f" numbered from 1 to {count}"
        )
    if unplaced:
        yield f"{unplaced} claims could not be matched to a sentence of the answer; not shown"
