"""FoRAG (arXiv 2406.13779, section 5.2): the factuality of each segment of the answer, paid where the segment ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from typing import Literal

from workbench.answers import answer_sections, in_answer, sections
from workbench.answers.outline import MOST_POINTS
from workbench.answers.sections import unfinished
from workbench.reward.verdicts import Table, by_sentence, claims, find, on_claim, probability, scored, sums, supported, total
from workbench.types import Claim, Event, Feedback, Reward, RewardFn

Evaluation = Literal["holistic", "sentence", "subclaim"]
Aggregate = Callable[[Sequence[float]], float]
Segment = tuple[float, int | None]  # its factuality, and where it ends (None: with the response)


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def forag(evaluation: Evaluation = "subclaim", aggregate: Aggregate = mean, baseline: bool | None = None) -> RewardFn:
    """The sum of the segments' factuality, each in [0, 1].

    A segment's value is the reward model's p: of the "factuality" verdict on the response ("holistic") or on `segment:i`, i
    being a sentence's index. Where there is none, the labels of the claims' "fact" verdicts stand in *(ours)*, 1 for a
    supported claim and 0 for any other, since figure 1 aggregates binary labels: `aggregate` of a sentence's claims
    ("subclaim"), the worst of them ("sentence"), the worst of the whole answer ("holistic"); the part `stood_in` counts these.
    A sentence without claims has no value; only the answer counts, no plan and no thinking *(both ours)*. Claims without a
    sentence share a segment at the end of the response *(ours)*. A plan that no answer follows counts as if the
    sentences that are missing were there and false, up to five, as many as a plan may have points, or the one whole *(ours)*:
    otherwise it would pay to break off where a mediocre answer pays less than nothing. An answer that declines has no segment.

    Args:
        baseline: subtract the "baseline" verdict's p, the mean over the segments of the reference's own answer, from every
            segment. None does so where there is such a verdict; True makes a response without one unscored.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        segments, stood_in = (
            _holistic(feedback, verdicts) if evaluation == "holistic" else _sentences(feedback, verdicts, joined)
        )
        left = unfinished(feedback.response.text, feedback.response.prefill)
        missing = max(0, promised - len(segments)) if left else 0
        segments += [(0.0, None)] * missing
        compared = baseline or (baseline is None and ("response", "baseline") in verdicts)
        reference = probability(find(verdicts, "response", "baseline")) if compared else 0.0
        segments.sort(key=lambda segment: (segment[1] is None, segment[1] or 0))
        events = [Event("factuality", value - reference, end) for value, end in segments]
        parts = {"segments": float(len(segments)), "baseline": reference, "stood_in": float(stood_in)}
        parts["unfinished"] = float(missing)
        return Reward(total(events), {**sums(events, "factuality"), **parts}, tuple(events), unplaced=_unplaced(feedback))

    joined = min if evaluation == "sentence" else aggregate
    promised = 1 if evaluation == "holistic" else MOST_POINTS
    return reward


def _holistic(feedback: Feedback, verdicts: Table) -> tuple[list[Segment], int]:
    if ("response", "factuality") in verdicts:
        return [(probability(find(verdicts, "response", "factuality")), None)], 0
    scores = [supported(on_claim(verdicts, claim, "fact")) for claim in _answer_claims(feedback)]
    return ([(min(scores), None)], 1) if scores else ([], 0)


def _sentences(feedback: Feedback, verdicts: Table, joined: Aggregate) -> tuple[list[Segment], int]:
    """The segments of the answer's sentences that have a value, and for how many of them claims stood in."""
    ends: dict[int | None, int | None] = {number: end for number, (_, end) in enumerate(feedback.sentences)}
    ends[None] = None
    modelled = _modelled(feedback, verdicts)
    unmodelled = {
        sentence: together for sentence, together in by_sentence(_answer_claims(feedback)).items() if sentence not in modelled
    }
    judged = [(probability(find(verdicts, f"segment:{number}", "factuality")), ends[number]) for number in modelled]
    stood_in = [
        (joined([supported(on_claim(verdicts, claim, "fact")) for claim in together]), ends[sentence])
        for sentence, together in unmodelled.items()
    ]
    return judged + stood_in, len(stood_in)


def _modelled(feedback: Feedback, verdicts: Table) -> list[int]:
    """The sentences that a reward model has judged and that stand in the answer, if only in part."""
    text, prefill = feedback.response.text, feedback.response.prefill
    judged = [n for n in range(len(feedback.sentences)) if (f"segment:{n}", "factuality") in verdicts]
    if not judged:
        return []
    wanted = answer_sections(text, prefill)
    answer = [(start, end) for section, start, end in sections(text, prefill) if section in wanted]
    spans = feedback.sentences
    return [n for n in judged if any(start < spans[n][1] and spans[n][0] < end for start, end in answer)]


def _answer_claims(feedback: Feedback) -> list[Claim]:
    """The claims of the answer."""
    return claims(feedback, in_answer(feedback.response))


def _unplaced(feedback: Feedback) -> tuple[int, ...]:
    return tuple(claim.id for claim in _answer_claims(feedback) if claim.sentence is None)
