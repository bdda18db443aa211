"""FoRAG (arXiv 2406.13779, section 5.2): the factuality of each segment of the answer, paid
where the segment ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from math import fsum
from typing import Literal, NamedTuple

from workbench.methods.lookup import (
    Table,
    by_sentence,
    claims,
    find,
    on_claim,
    probability,
    scored,
    sums,
    supported,
    total,
)
from workbench.text import answer_sections, in_answer, sections
from workbench.text.outline import MOST_POINTS
from workbench.text.repeats import gist, wording
from workbench.text.sections import unfinished
from workbench.types import SUBJECTS, Claim, Event, Feedback, Reward, RewardFn, WorkbenchError

Evaluation = Literal["holistic", "sentence", "subclaim"]
Repeats = Literal["paid", "once"]
Aggregate = Callable[[Sequence[float]], float]


class Segment(NamedTuple):
    """A segment's factuality, where it ends (None: with the response), its sentence, and whether
    its claims stood in.
    """

    value: float
    end: int | None = None
    sentence: int | None = None
    stood_in: bool = False


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def forag(
    evaluation: Evaluation = "subclaim",
    aggregate: Aggregate = mean,
    baseline: bool | None = None,
    repeats: Repeats = "paid",
) -> RewardFn:
    """The sum of the segments' factuality, each in [0, 1].

    A segment's value is the reward model's p: of the "factuality" verdict on the response
    ("holistic") or on `segment:i`, i being a sentence's index. Where there is none, the labels
    of the claims' "fact" verdicts stand in *(ours)*, 1 for a supported claim and 0 for any
    other, since figure 1 aggregates binary labels: `aggregate` of a sentence's claims
    ("subclaim"), the worst of them ("sentence"), the worst of the whole answer ("holistic"); the
    part `stood_in` counts these. A sentence without claims has no value; only the answer counts,
    no plan and no thinking *(both ours)*. Claims without a sentence share a segment at the end
    of the response *(ours)*. A plan that no answer follows counts as if the sentences that are
    missing were there and false, up to five, as many as a plan may have points, or the one whole
    *(ours)*: otherwise it would pay to break off where a mediocre answer pays less than nothing.
    An answer that declines has no segment.

    Args:
        baseline: subtract the "baseline" verdict's p, the mean over the segments of the
        reference's own answer, from every
            segment. None does so where there is such a verdict; True makes a response without
            one unscored.
        repeats: "once": a sentence that says again what the answer has said is no segment
        *(ours)*, so that it neither pays nor
            costs; the part `repeated` counts these. It repeats where its words are those of an
            earlier sentence or claim that
            was as true, whoever "she" may be there; or where each of its claims does so. True
            are supported claims, or a reward
            model's p from the reference's on, or from .5 where there is none. What is true may
            have its words in another order,
            and a few more that say nothing (see `gist`); or the judge may say that it repeats,
            which may know what a claim says
            in other words. What is not true repeats word by word alone (see `wording`): nothing
            false is passed over but what
            was false and paid as such before. What is true in other words is paid again, unless
            the judge knows. The paper pays
            all of it again.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        found = (
            _holistic(feedback, verdicts)
            if evaluation == "holistic"
            else _sentences(feedback, verdicts, joined)
        )
        compared = baseline or (baseline is None and ("response", "baseline") in verdicts)
        reference = probability(find(verdicts, "response", "baseline")) if compared else 0.0
        again = (
            _repeated(feedback, verdicts, reference if compared else 0.5)
            if once
            else set[int | None]()
        )
        segments = [segment for segment in found if not (once and segment.sentence in again)]
        missing = (
            max(0, promised - len(segments))
            if unfinished(feedback.response.text, feedback.response.prefill)
            else 0
        )
        ends = sorted(
            [*segments, *[Segment(0.0)] * missing],
            key=lambda segment: (segment.end is None, segment.end or 0),
        )
        events = [Event("factuality", segment.value - reference, segment.end) for segment in ends]
        parts = {
            "segments": float(len(events)),
            "baseline": reference,
            "stood_in": float(sum(s.stood_in for s in segments)),
            "unfinished": float(missing),
            **({"repeated": float(len(again))} if once else {}),
        }
        return Reward(
            total(events),
            {**sums(events, "factuality"), **parts},
            tuple(events),
            unplaced=_unplaced(feedback),
        )

    if evaluation == "holistic" and repeats == "once":
        raise WorkbenchError(
            "forag.repeats is once: evaluation=holistic pays no sentence; leave it out"
        )
    joined = min if evaluation == "sentence" else aggregate
    once = repeats == "once"
    promised = 1 if evaluation == "holistic" else MOST_POINTS
    return reward


def _holistic(feedback: Feedback, verdicts: Table) -> list[Segment]:
    if ("response", "factuality") in verdicts:
        return [Segment(probability(find(verdicts, "response", "factuality")))]
    scores = [supported(on_claim(verdicts, claim, "fact")) for claim in _answer_claims(feedback)]
    return [Segment(min(scores), stood_in=True)] if scores else []


def _sentences(feedback: Feedback, verdicts: Table, joined: Aggregate) -> list[Segment]:
    """The answer's sentences that have a value."""
    ends: dict[int | None, int | None] = {
        number: end for number, (_, end) in enumerate(feedback.sentences)
    }
    ends[None] = None
    modelled = dict.fromkeys(_modelled(feedback, verdicts))
    told = {
        number: own
        for number, own in by_sentence(_answer_claims(feedback)).items()
        if number not in modelled
    }
    judged = [
        Segment(
            probability(find(verdicts, f"segment:{number}", "factuality")), ends[number], number
        )
        for number in modelled
    ]
    stood_in = [
        Segment(
            joined([supported(on_claim(verdicts, claim, "fact")) for claim in own]),
            ends[number],
            number,
            True,
        )
        for number, own in told.items()
    ]
    return judged + stood_in


def _repeated(feedback: Feedback, verdicts: Table, least: float) -> set[int | None]:
    """The sentences of the answer that say nothing but what earlier ones have said; None for the
    claims without a sentence.

    `least` is the p from which on a sentence that a reward model has judged is taken for true.
    """
    told, modelled = by_sentence(_answer_claims(feedback)), set(_modelled(feedback, verdicts))
    said, found = set[Hashable](), set[int | None]()
    for number in sorted({*told, *modelled}, key=lambda number: (number is None, number or 0)):
        own = told.get(number, [])
        true = _true(verdicts, own, number if number in modelled else None, least)
        parts = [_statement(claim.text, [holds]) for claim, holds in zip(own, true, strict=False)]
        whole = (
            set()
            if number is None
            else {_statement(feedback.response.text[slice(*feedback.sentences[number])], true)}
        )
        told_before = [
            holds and _said_before(verdicts, claim) for claim, holds in zip(own, true, strict=False)
        ]
        claimed = [part in said or before for part, before in zip(parts, told_before, strict=True)]
        if whole & said or (claimed and all(claimed)):
            found.add(number)
        said |= {*parts, *whole}
    return found


def _true(verdicts: Table, own: Sequence[Claim], judged: int | None, least: float) -> list[bool]:
    """Whether each claim of a sentence is true: by its verdict, or by what a reward model has
    judged the sentence to be.
    """
    if judged is not None:
        return [probability(find(verdicts, f"segment:{judged}", "factuality")) >= least] * max(
            1, len(own)
        )
    return [bool(supported(on_claim(verdicts, claim, "fact"))) for claim in own]


def _statement(text: str, true: Sequence[bool]) -> Hashable:
    """What two texts have in common that say the same and are as true, by which of their claims
    are true.
    """
    return gist(text) if all(true) else (tuple(true), wording(text))


def _said_before(verdicts: Table, claim: Claim) -> bool:
    """Whether the judge says that a claim about what was asked is of no use: it repeats an
    earlier one.
    """
    verdict = verdicts.get((f"claim:{claim.id}", "subject"))
    return verdict is not None and verdict.error is None and verdict.label == SUBJECTS[0]


def _modelled(feedback: Feedback, verdicts: Table) -> list[int]:
    """The sentences that a reward model has judged and that stand in the answer, if only in
    part.
    """
    text, prefill = feedback.response.text, feedback.response.prefill
    judged = [
        n for n in range(len(feedback.sentences)) if (f"segment:{n}", "factuality") in verdicts
    ]
    if not judged:
        return []
    wanted = answer_sections(text, prefill)
    answer = [(start, end) for section, start, end in sections(text, prefill) if section in wanted]
    return [number for number in judged if _meets(feedback.sentences[number], answer)]


def _meets(span: tuple[int, int], parts: Sequence[tuple[int, int]]) -> bool:
    """Whether a place has a character in common with one of the parts, which are in order and
    disjoint.
    """
    # of the parts that begin before it ends, the last ends last
    before = bisect_left(parts, span[1], key=lambda part: part[0])
    return before > 0 and span[0] < parts[before - 1][1]


def _answer_claims(feedback: Feedback) -> list[Claim]:
    """The claims of the answer."""
    return claims(feedback, in_answer(feedback.response))


def _unplaced(feedback: Feedback) -> tuple[int, ...]:
    return tuple(claim.id for claim in _answer_claims(feedback) if claim.sentence is None)
