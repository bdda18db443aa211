"""A judged answer, sentence by sentence: what each rests on, and how well it is supported.

A sentence rests on the passages that it cites ("… [2]"); where it cites none, on those that the
points of the plan about its facets name; where these name none either, on those in which the
judge found its claims. Its label is that of its worst claim, with that claim's p: a sentence
holds if all of it does. Without a claim it has no label, and none either where the judge failed
on one of its claims *(ours)*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from workbench.metrics.facets import about, cited_numbers, rests_on
from workbench.text import answer_sections, section_at, sections, sentences
from workbench.text.outline import read_outline, read_plan, uncited
from workbench.types import CLAIM_LABELS, Claim, Feedback, Passage, Response, Verdict

NOTHING_WRITTEN = "the policy wrote nothing"
NO_PLAN = "the answer has no plan ([Structure] … [Outline] … [Answer] …) and is shown as it is"
NO_ANSWER = (
    "nothing of it is said as an answer: a plan or a thought that does not end states nothing"
)


@dataclass(frozen=True)
class Sentence:
    """One sentence of an answer. `passages` are the ids of those that it rests on; `cited` the
    numbers that it or its point names, whether or not there is such a passage; `found` the ids
    of those in which the judge found its supported claims; `error` why it could not be judged."""

    text: str
    passages: tuple[str, ...] = ()
    label: str | None = None
    p: float | None = None
    cited: tuple[int, ...] = ()
    found: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a policy answered from `passages`, in the order of their numbers. `structure` is None
    and `outline` empty where the answer has no plan; `text` is all that the policy wrote,
    `notes` what a reader should know, `judge` who gave the labels."""

    question: str
    passages: tuple[Passage, ...] = ()
    text: str = ""
    structure: str | None = None
    outline: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    notes: tuple[str, ...] = ()
    judge: str | None = None

    @property
    def failed(self) -> int:
        """How many sentences could not be judged."""
        return sum(sentence.error is not None for sentence in self.sentences)

    def to_row(self) -> dict[str, Any]:
        """As one JSON object; docs/formats.md describes it."""
        return {
            "question": self.question,
            "structure": self.structure,
            "outline": list(self.outline),
            "sentences": [
                {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in asdict(sentence).items()
                }
                for sentence in self.sentences
            ],
            "passages": [asdict(passage) for passage in self.passages],
            "text": self.text,
            "notes": list(self.notes),
            "judge": self.judge,
            "failed": self.failed,
        }


def supported(feedback: Feedback, notes: Sequence[str] = ()) -> Answer:
    """The answer that a row of feedback holds; its claims are judged by the aspect "fact"."""
    response = feedback.response
    structure, outline = read_plan(response.text) or (None, ())
    spans = _spans(response)
    claims = _by_span(feedback, spans)
    found = tuple(_sentences(feedback, spans, claims))
    unplaced = len(feedback.claims) - sum(map(len, claims.values()))
    judges = dict.fromkeys(
        verdict.by for verdict in feedback.verdicts if verdict.aspect == "fact" and verdict.by
    )
    return Answer(
        response.question.text,
        response.question.passages,
        response.text.strip(),
        structure,
        outline,
        found,
        (*notes, *_notes(response, found, structure, unplaced)),
        next(iter(judges), None),
    )


def _spans(response: Response) -> list[tuple[int, int]]:
    """The sentences of the answer, without thinking and plan; a citation behind a sentence is no
    sentence's beginning.
    """
    text, prefill = response.text, response.prefill
    parts, wanted = sections(text, prefill), answer_sections(text, prefill)
    return [
        span for span in sentences(uncited(text), prefill) if section_at(parts, span[0]) in wanted
    ]


def _by_span(
    feedback: Feedback, spans: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], list[Claim]]:
    """The claims of each sentence: those that begin in it, or that were read from a sentence
    that does.
    """
    claims: dict[tuple[int, int], list[Claim]] = {span: [] for span in spans}
    for claim in feedback.claims:
        start = (
            feedback.sentences[claim.sentence][0]
            if claim.sentence is not None
            else claim.span[0]
            if claim.span
            else -1
        )
        for span in spans:
            if span[0] <= start < span[1]:
                claims[span].append(claim)
    return claims


def _sentences(
    feedback: Feedback,
    spans: Sequence[tuple[int, int]],
    claims: Mapping[tuple[int, int], Sequence[Claim]],
) -> Iterator[Sentence]:
    response, passages = feedback.response, feedback.response.question.passages
    facts = {
        verdict.target: verdict
        for verdict in reversed(feedback.verdicts)
        if verdict.aspect == "fact"
    }
    plan, names = read_outline(response.text), _facets(response)
    for (start, end), (following, _) in pairwise([*spans, (len(response.text), 0)]):
        text, own = response.text[start:end], claims[start, end]
        verdicts = [facts[target] for claim in own if (target := f"claim:{claim.id}") in facts]
        told = [name for claim in own for name in about(claim.text, names)] or about(text, names)
        cited = cited_numbers(response.text[start:following], plan, told)
        supporting = {passage for verdict in verdicts for passage in rests_on(verdict)}
        found = [passage.id for passage in passages if passage.id in supporting]
        numbers = [number for number in cited if 0 < number <= len(passages)]
        rests = [passages[number - 1].id for number in numbers] if cited else found
        failure = feedback.error or next(
            (verdict.error for verdict in verdicts if verdict.error), None
        )
        label, p = (None, None) if failure else _worst(verdicts)
        yield Sentence(
            text,
            tuple(rests),
            label,
            p,
            tuple(cited),
            tuple(found),
            failure.message if failure else None,
        )


def _facets(response: Response) -> Collection[str]:
    """What the question asks about or, where nobody says, what its passages are about."""
    titles = (
        response.question.title.split(";")
        if response.question.title
        else [p.title for p in response.question.passages]
    )
    return {title.strip() for title in titles if title.strip()}


def _worst(verdicts: Sequence[Verdict]) -> tuple[str | None, float | None]:
    judged = [verdict for verdict in verdicts if verdict.label in CLAIM_LABELS]
    if not judged:
        return None, None
    worst = max(
        judged, key=lambda verdict: (CLAIM_LABELS.index(verdict.label or ""), -(verdict.p or 0.0))
    )
    return worst.label, worst.p


def _notes(
    response: Response, found: Sequence[Sentence], structure: str | None, unplaced: int
) -> Iterator[str]:
    count = len(response.question.passages)
    if not response.text.strip():
        yield NOTHING_WRITTEN
    elif structure is None:
        yield NO_PLAN
        if not found:
            yield NO_ANSWER
    if response.finish == "length":
        yield f"the answer was cut off after {len(response.token_ids)} tokens"
    if wrong := sorted(
        {number for sentence in found for number in sentence.cited if not 0 < number <= count}
    ):
        yield (
            f"{', '.join(f'[{number}]' for number in wrong)} is cited, and the passages are"
            f" numbered from 1 to {count}"
        )
    if unplaced:
        yield (
            f"{unplaced} claims that the judge read are in no sentence of the answer, and are not"
            " shown"
        )
