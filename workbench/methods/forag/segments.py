"""The segments of an answer (FoRAG, arXiv 2406.13779, section 5.2), and judged samples as training
rows of a reward model.

A segment is a sentence of the answer with at least one claim. With `evaluation="holistic"` it is
the span from the first such sentence to the last.
"""

from collections import Counter
from collections.abc import Sequence

from workbench.methods.forag.config import Evaluation
from workbench.methods.forag.reward import Aggregate
from workbench.methods.lookup import Unscored, by_sentence, on_claim, supported, table
from workbench.text import in_answer
from workbench.training.rows import Card
from workbench.training.scorer import Judged, Segment
from workbench.types import Claim, Claims, Feedback, Response

# by the target of its verdict: a segment's span, without surrounding white space, and its claims
Segments = dict[str, tuple[tuple[int, int], list[Claim]]]


def segments(response: Response, read: Claims | Feedback, evaluation: Evaluation) -> Segments:
    """Return the segments of a response whose claims were extracted."""
    claims = filter(in_answer(response), read.claims)
    groups = by_sentence([claim for claim in claims if claim.sentence is not None])
    found = {
        f"segment:{number}": (read.sentences[number], groups[number])
        for number in range(len(read.sentences))
        if number in groups
    }
    if evaluation != "holistic" or not found:
        return found
    spans = [span for span, _ in found.values()]
    whole = (min(start for start, _ in spans), max(end for _, end in spans))
    return {"response": (whole, [claim for own in groups.values() for claim in own])}


def judged_rows(
    feedbacks: Sequence[Feedback],
    evaluation: Evaluation,
    aggregate: Aggregate,
    reads: Sequence[Claims] | None = None,
) -> tuple[list[Judged], Card]:
    """Turn samples with "fact" verdicts into training rows of a reward model.

    A segment's target aggregates its claims' labels: 1 for a supported claim, 0 for any other.
    Responses that reached the token limit are included, as training has such responses too.

    Args:
        reads: the claims as training will extract them; None if training uses the judge's
            extractor. A row then has the segments that both extractions find, with the spans of
            training and the labels of the judge.
    """
    rows, dropped, kinds = list[Judged](), Counter[str](), Counter[str]()
    extracted: Sequence[Claims | Feedback] = reads or feedbacks
    for feedback, read in zip(feedbacks, extracted, strict=True):
        row = _judged(feedback, read, evaluation, aggregate)
        if isinstance(row, Judged):
            rows.append(row)
            kinds.update(
                "supported" if s.target == 1 else "unsupported" if s.target == 0 else "partly"
                for s in row.segments
            )
        else:
            dropped[row] += 1
    questions = {feedback.response.question.id for feedback in feedbacks}
    left_out = len(questions - {row.question.id for row in rows})
    card = Card(
        "judged_segments",
        len(questions),
        len(feedbacks),
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
    # all extractors split sentences by the same rules
    assert read.sentences == feedback.sentences, response.id
    try:
        targets = {
            name: aggregate([supported(on_claim(verdicts, claim, "fact")) for claim in own])
            for name, (_, own) in segments(response, feedback, evaluation).items()
        }
    except Unscored:
        return "failed"
    rewarded = segments(response, read, evaluation).items()
    # a segment that only one of the two extractions finds has no target or no place
    placed = tuple(Segment(*span, targets[name]) for name, (span, _) in rewarded if name in targets)
    if not placed:
        return "no claims"
    return Judged(response.question, response.text, placed, response.token_ids)
