"""FoRAG's reward (arXiv 2406.13779, section 5.2): the factuality of the answer's segments."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from workbench.methods.forag.config import FoRAG
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
from workbench.text import answer_sections, in_answer, normalise, sections
from workbench.text.outline import MOST_POINTS, uncited
from workbench.text.sections import unfinished
from workbench.types import Claim, Event, Feedback, Reward, RewardFn, WorkbenchError
from workbench.util.config import check_values

Aggregate = Callable[[Sequence[float]], float]


class Segment(NamedTuple):
    """A sentence of the answer, or the whole answer, with its factuality.

    Attributes:
        value: the factuality, from 0 to 1.
        sentence: index of the sentence at whose end the reward is placed. None: the reward is
            placed at the end of the response.
        stood_in: True if `value` was computed from verdicts on claims, not by a reward model.
    """

    value: float
    sentence: int | None = None
    stood_in: bool = False


def aggregate(config: FoRAG) -> Aggregate:
    """Return the function that computes a segment's factuality from the values of its claims.

    A claim has the value 1 if it is supported, else 0. The paper calls the function Agg (table 2):

    * `evaluation="subclaim"`: the mean, minimum or maximum, as the setting `aggregate` says.
    * `evaluation="sentence"` or `"holistic"`: the minimum, because a sentence or an answer is as
      factual as its worst claim.
    """
    chosen: dict[str, Aggregate] = {"mean": fmean, "min": min, "max": max}
    return chosen[config.aggregate] if config.evaluation == "subclaim" else min


def reward(config: FoRAG) -> RewardFn:
    """Return the reward function: the sum over the answer's segments of (factuality − baseline).

    A segment is a sentence of the answer with claims. With `evaluation="holistic"`, the whole
    answer is the only segment. The outline before the answer and the thinking do not count
    *(ours)*. Claims that belong to no sentence form one more segment *(ours)*.

    * The factuality of a segment, from 0 to 1, is the score of the reward model: `Verdict.p` of the
      check "factuality". Without this verdict, `aggregate` computes it from the claims, with the
      value 1 for a supported claim, else 0 *(ours)*.
    * The baseline is the mean factuality of the reference model's answers: `Verdict.p` of the check
      "baseline". If this verdict is missing, the setting `baseline` decides. None: the baseline is
      0. True: the reward is None. With `baseline=False`, the baseline is always 0.
    * `repeats="once"` leaves out sentences that repeat an earlier one *(ours)*.
    * If a response has an outline but no answer, segments of factuality 0 are added, until there
      are 5 segments (1 if holistic) *(ours)*.

    The reward is None if a verdict that it needs failed or is missing.

    Raises:
        WorkbenchError: invalid settings.
    """
    check_values(config)
    holistic, once = config.evaluation == "holistic", config.repeats == "once"
    if holistic and once:
        raise WorkbenchError(
            "forag.repeats=once has no effect with evaluation=holistic: leave forag.repeats out"
        )
    join = aggregate(config)

    @scored
    def forag(feedback: Feedback, verdicts: Table) -> Reward:
        answer = claims(feedback, in_answer(feedback.response))
        groups = by_sentence(answer)
        # a dict, because it keeps the order and has a fast membership test
        modelled = dict.fromkeys(modelled_sentences(feedback, verdicts))

        def from_claims(own: Sequence[Claim]) -> float:
            # figure 1 aggregates binary labels
            return join([supported(on_claim(verdicts, claim, "fact")) for claim in own])

        if not holistic:
            scores = {n: find(verdicts, f"segment:{n}", "factuality") for n in modelled}
            segments = [Segment(probability(score), n) for n, score in scores.items()]
            others = {n: own for n, own in groups.items() if n not in modelled}
            segments += [Segment(from_claims(own), n, True) for n, own in others.items()]
        elif ("response", "factuality") in verdicts:
            segments = [Segment(probability(find(verdicts, "response", "factuality")))]
        else:
            segments = [Segment(from_claims(answer), stood_in=True)] if answer else []

        compared = config.baseline
        if compared is None:
            compared = ("response", "baseline") in verdicts
        baseline = probability(find(verdicts, "response", "baseline")) if compared else 0.0
        repeated = _repeated(feedback, segments) if once else set()
        segments = [segment for segment in segments if segment.sentence not in repeated]
        # Number of segments to add for a plan without an answer. Without them its reward would be
        # 0, more than that of an answer below the baseline.
        missing = 0
        if unfinished(feedback.response.text, feedback.response.prefill):
            missing = max(0, (1 if holistic else MOST_POINTS) - len(segments))

        # Σ_j 1(t = T_j)·R[j] of section 5.2; PPO adds the KL term
        events = [
            Event(
                "factuality",
                segment.value - baseline,
                None if segment.sentence is None else feedback.sentences[segment.sentence][1],
            )
            for segment in [*segments, *[Segment(0.0)] * missing]
        ]
        events.sort(key=lambda event: (event.end is None, event.end or 0))
        parts = {
            **sums(events, "factuality"),
            "segments": float(len(events)),
            "baseline": baseline,
            "stood_in": float(sum(segment.stood_in for segment in segments)),
            "unfinished": float(missing),
            **({"repeated": float(len(repeated))} if once else {}),
        }
        unplaced = tuple(claim.id for claim in groups.get(None, ()))
        return Reward(total(events), parts, tuple(events), unplaced=unplaced)

    return forag


def _repeated(feedback: Feedback, segments: Sequence[Segment]) -> set[int]:
    """Return the indices of sentences that repeat an earlier sentence. Citations are ignored."""
    numbers = sorted(s.sentence for s in segments if s.sentence is not None)
    first: dict[str, int] = {}
    for number in numbers:
        text = feedback.response.text[slice(*feedback.sentences[number])]
        first.setdefault(normalise(uncited(text)), number)
    return set(numbers) - set(first.values())


def modelled_sentences(feedback: Feedback, verdicts: Table) -> list[int]:
    """Return the indices of the answer's sentences that a reward model scored.

    These are sentences with a verdict of the check "factuality". Sentences that are entirely in the
    outline or in the thinking are left out.
    """
    text, prefill = feedback.response.text, feedback.response.prefill
    numbers = [
        n for n in range(len(feedback.sentences)) if (f"segment:{n}", "factuality") in verdicts
    ]
    if not numbers:
        return []
    wanted = answer_sections(text, prefill)
    answer = [(start, end) for section, start, end in sections(text, prefill) if section in wanted]

    def overlaps(start: int, end: int) -> bool:
        # The parts of the answer are disjoint and in order. So if a part overlaps, the last part
        # that begins before `end` does.
        before = bisect_left(answer, end, key=lambda part: part[0])
        return before > 0 and start < answer[before - 1][1]

    return [number for number in numbers if overlaps(*feedback.sentences[number])]
