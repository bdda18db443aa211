"""The segments of an answer between a judge and a reward model (FoRAG, arXiv 2406.13779, section
5.2): judged samples → rows to train on, a trained model → a check with verdicts on segments, and
the values of the reference's own answers.

A segment is a sentence of the answer that makes a claim, or the answer from the first such
sentence to the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from workbench.methods.forag.reward import Aggregate, Evaluation
from workbench.methods.lookup import Unscored, by_sentence, on_claim, supported, table
from workbench.text import in_answer
from workbench.training.rows import Card
from workbench.training.scorer import Judged, Scorer, Segment
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Failure,
    Feedback,
    Response,
    Verdict,
    Verify,
)

HOLISTIC = "response"
Span = tuple[int, int]


def segments(
    response: Response, read: Claims | Feedback, evaluation: Evaluation
) -> dict[str, tuple[Span, list[Claim]]]:
    """By the target of its verdict each segment's place, without white space around it, and its
    claims.
    """
    said = by_sentence(
        [claim for claim in filter(in_answer(response), read.claims) if claim.sentence is not None]
    )
    spans = {
        number: read.sentences[number]
        for number in sorted(said, key=lambda number: number or 0)
        if number is not None
    }
    if evaluation != "holistic":
        return {f"segment:{number}": (span, said[number]) for number, span in spans.items()}
    if not spans:
        return {}
    whole = (min(start for start, _ in spans.values()), max(end for _, end in spans.values()))
    return {HOLISTIC: (whole, [claim for together in said.values() for claim in together])}


def judged_rows(
    feedbacks: Sequence[Feedback],
    evaluation: Evaluation,
    aggregate: Aggregate,
    reads: Sequence[Claims] | None = None,
) -> tuple[list[Judged], Card]:
    """Samples with "fact" verdicts as rows for a reward model; a segment's target is `aggregate`
    of its claims' labels, 1 for a supported claim and 0 for any other. What was cut off counts:
    a policy in training is cut off as well.

    `reads` are the samples as training will read them, where that is not as the judge has: a row
    then has the segments that both find, with the place that training gives them and the judge's
    labels. See `cuts` for the others.
    """
    rows, dropped, kinds = list[Judged](), Counter[str](), Counter[str]()
    asked = set[str]()
    cut: Sequence[Claims | Feedback] = feedbacks if reads is None else reads
    for feedback, read in zip(feedbacks, cut, strict=True):
        asked.add(feedback.response.question.id)
        row = _judged(feedback, read, evaluation, aggregate)
        if isinstance(row, Judged):
            rows.append(row)
            kinds.update(
                "supported" if s.target == 1 else "unsupported" if s.target == 0 else "partly"
                for s in row.segments
            )
        else:
            dropped[row] += 1
    left_out = len(asked - {row.question.id for row in rows})
    card = Card(
        "judged_segments",
        len(asked),
        len(rows) + dropped.total(),
        dict(sorted(kinds.items())),
        {"no usable sample": left_out} if left_out else {},
        dict(sorted(dropped.items())),
    )
    return rows, card


def _judged(
    feedback: Feedback, read: Claims | Feedback, evaluation: Evaluation, aggregate: Aggregate
) -> Judged | str:
    """Return the training row of a sample, or the reason why it is dropped."""
    if feedback.error is not None:
        return "failed"
    verdicts, response = table(feedback), feedback.response
    # both readers find the same: see `workbench.claims`
    assert read.sentences == feedback.sentences, response.id
    found, paid = segments(response, feedback, evaluation), segments(response, read, evaluation)
    try:
        targets = {
            name: aggregate([supported(on_claim(verdicts, claim, "fact")) for claim in own])
            for name, (_, own) in found.items()
        }
    except Unscored:
        return "failed"
    placed = [Segment(*span, targets[name]) for name, (span, _) in paid.items() if name in targets]
    return (
        Judged(response.question, response.text, tuple(placed), response.token_ids)
        if placed
        else "no claims"
    )


def cuts(
    feedbacks: Sequence[Feedback], reads: Sequence[Claims], evaluation: Evaluation
) -> dict[str, int]:
    """How many segments of the samples that were judged the judge and training's own reader both
    find, and each alone: `paid_alone` get a value that nothing was learnt for, and
    `judged_alone` none."""
    counts = {"both": 0, "paid_alone": 0, "judged_alone": 0}
    for feedback, read in zip(feedbacks, reads, strict=True):
        if feedback.error is None:
            paid = segments(feedback.response, read, evaluation).keys()
            judged = segments(feedback.response, feedback, evaluation).keys()
            counts["both"] += len(paid & judged)
            counts["paid_alone"] += len(paid - judged)
            counts["judged_alone"] += len(judged - paid)
    return counts


def factuality(scorer: Scorer, evaluation: Evaluation, by: str = "reward model") -> Verify:
    """Aspect "factuality": p of every segment, all of a batch's in few forward passes. What is
    longer than the model reads is a failure; the length of answers is bounded where they are
    sampled."""

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        found = [segments(response, read, evaluation) for response, read in batch]
        rows = [unjudged(response, own) for (response, _), own in zip(batch, found, strict=True)]
        scores = iter(scorer.score([row for row in rows if row.segments]))
        return [Checked(tuple(verdicts(list(own), next(scores))) if own else ()) for own in found]

    def verdicts(targets: Sequence[str], values: Sequence[float]) -> list[Verdict]:
        if values:
            scored = zip(targets, values, strict=True)
            return [Verdict(target, "factuality", p=value, by=by) for target, value in scored]
        message = (
            f"prompt and answer have more tokens than the reward model reads, {scorer.longest}"
        )
        long = Failure("verify", "too_long", message)
        return [Verdict(target, "factuality", by=by, error=long) for target in targets]

    return verify


def unjudged(response: Response, found: Mapping[str, tuple[Span, list[Claim]]]) -> Judged:
    """Return the response as an unlabelled row for a reward model."""
    placed = tuple(Segment(*span) for span, _ in found.values())
    ids = response.token_ids if response.source == "sampled" else ()
    return Judged(response.question, response.text, placed, ids)


def reference_values(feedbacks: Iterable[Feedback], method: str) -> dict[str, float | Failure]:
    """By question the mean value of a segment of the reference's own answers, or why all of them
    failed; where they have no segment, the mean over all questions' *(ours)*: against 0 any
    answer to such a question would pay. Where none has one, nothing can be compared, and that is
    a failure."""
    # the values of the segments together, and how many they are
    sums: dict[str, tuple[float, float]] = {}
    failed: dict[str, float | Failure] = {}
    for feedback in feedbacks:
        question, paid = feedback.response.question.id, feedback.rewards[method]
        if paid.value is None:
            failed[question] = paid.error or Failure(
                "reward", "no_verdict", "the reference has no value"
            )
        else:
            value, count = sums.get(question, (0.0, 0.0))
            sums[question] = (value + paid.value, count + paid.parts["segments"])
    together = sum(count for _, count in sums.values())
    if not together:
        nothing = Failure(
            "reward",
            "no_verdict",
            "no answer of the reference makes a claim: look at its cold start",
        )
        return failed | dict.fromkeys(sums, nothing)
    usual = sum(value for value, _ in sums.values()) / together
    return failed | {
        question: value / count if count else usual for question, (value, count) in sums.items()
    }


def baseline(values: Mapping[str, float | Failure], by: str = "reference") -> Verify:
    """Aspect "baseline": what `reference_values` says of the response's question."""

    def of(question: str) -> Verdict:
        missing = Failure(
            "verify", "not_probed", f"the reference was not asked question '{question}'"
        )
        value = values.get(question, missing)
        if isinstance(value, Failure):
            return Verdict("response", "baseline", by=by, error=value)
        return Verdict("response", "baseline", p=value, by=by)

    return lambda batch: [Checked((of(response.question.id),)) for response, _ in batch]
