"""FoRAG (arXiv 2406.13779, section 5.2): the factuality of each segment of the answer, paid where the segment ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from typing import Literal

from workbench.extract.sections import section_at, sections
from workbench.reward.layout import answer_sections
from workbench.reward.verdicts import Table, by_sentence, claims, find, on_claim, probability, scored, sums, total
from workbench.types import Claim, Event, Feedback, Reward, RewardFn

Evaluation = Literal["holistic", "sentence", "subclaim"]
Aggregate = Callable[[Sequence[float]], float]


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def forag(evaluation: Evaluation = "subclaim", aggregate: Aggregate = mean, baseline: bool | None = None) -> RewardFn:
    """The sum of the segments' factuality, each in [0, 1].

    A segment's value is the reward model's p: of the "factuality" verdict on the response ("holistic") or on `segment:i`, i
    being a sentence's index. Where there is none, the claims' "fact" verdicts stand in *(ours)*: `aggregate` of a sentence's
    claims ("subclaim"), the worst of them ("sentence"), the worst of the whole answer ("holistic"); the part `stood_in` counts
    these. A sentence without claims has no value; only the answer counts, no plan and no thinking *(both ours)*. Claims
    without a sentence share a segment at the end of the response *(ours)*.

    Args:
        baseline: subtract the "baseline" verdict's p, the mean over the segments of the reference's own answer, from every
            segment. None does so where there is such a verdict; True makes a response without one unscored.
    """

    @scored
    def reward(feedback: Feedback, verdicts: Table) -> Reward:
        values, stood_in = _holistic(feedback, verdicts) if evaluation == "holistic" else _sentences(feedback, verdicts, joined)
        compared = baseline or (baseline is None and ("response", "baseline") in verdicts)
        reference = probability(find(verdicts, "response", "baseline")) if compared else 0.0
        ends = sorted(values, key=lambda end: (end is None, end or 0))
        events = [Event("factuality", values[end] - reference, end) for end in ends]
        parts = {"segments": float(len(values)), "baseline": reference, "stood_in": float(stood_in)}
        return Reward(total(events), {**sums(events, "factuality"), **parts}, tuple(events), unplaced=_unplaced(feedback))

    joined = min if evaluation == "sentence" else aggregate
    return reward


def _holistic(feedback: Feedback, verdicts: Table) -> tuple[dict[int | None, float], int]:
    if ("response", "factuality") in verdicts:
        return {None: probability(find(verdicts, "response", "factuality"))}, 0
    told = [probability(on_claim(verdicts, claim, "fact")) for claim in _told(feedback)]
    return ({None: min(told)}, 1) if told else ({}, 0)


def _sentences(feedback: Feedback, verdicts: Table, joined: Aggregate) -> tuple[dict[int | None, float], int]:
    """The value of each sentence of the answer that has one, by its end (None for claims without a sentence)."""
    values: dict[int | None, float] = {}
    modelled = _modelled(feedback, verdicts)
    for number in modelled:
        values[feedback.sentences[number][1]] = probability(find(verdicts, f"segment:{number}", "factuality"))
    for sentence, told in by_sentence(_told(feedback)).items():
        if sentence not in modelled:
            end = None if sentence is None else feedback.sentences[sentence][1]
            values[end] = joined([probability(on_claim(verdicts, claim, "fact")) for claim in told])
    return values, len(values) - len(modelled)


def _modelled(feedback: Feedback, verdicts: Table) -> list[int]:
    """The sentences of the answer that a reward model has judged."""
    text = feedback.response.text
    judged = [n for n in range(len(feedback.sentences)) if (f"segment:{n}", "factuality") in verdicts]
    if not judged:
        return []
    found, wanted = sections(text), answer_sections(text)
    return [number for number in judged if section_at(found, feedback.sentences[number][0]) in wanted]


def _told(feedback: Feedback) -> list[Claim]:
    """The claims of the answer."""
    wanted = answer_sections(feedback.response.text)
    return claims(feedback, lambda claim: claim.section in wanted)


def _unplaced(feedback: Feedback) -> tuple[int, ...]:
    return tuple(claim.id for claim in _told(feedback) if claim.sentence is None)
