"""The segments of an answer, which a reward model scores (FoRAG, arXiv 2406.13779, section 5.2).

A segment is a sentence of the answer with at least one claim. With `evaluation="holistic"` there is
one segment, from the first such sentence to the last. This module makes:

* training rows for the reward model, from sampled answers with the judge's verdicts
* the check "factuality", which gives the reward model's score of each segment
* the check "baseline", which gives the mean score of the reference model's answers to the question
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from workbench.methods.forag.config import Evaluation
from workbench.methods.forag.reward import Aggregate
from workbench.methods.lookup import Unscored, by_sentence, on_claim, supported, table
from workbench.text import in_answer
from workbench.training.rows import Card
from workbench.training.scorer import Judged, Scorer, Segment
from workbench.types import (
    Batch,
    Checked,
    Claim,
    Claims,
    Failure,
    Feedback,
    Response,
    Span,
    Verdict,
    Verify,
)

# target of the segment's verdict, such as "segment:0" -> (its span without surrounding white space,
# its claims)
Segments = dict[str, tuple[Span, list[Claim]]]


def segments(response: Response, read: Claims | Feedback, evaluation: Evaluation) -> Segments:
    """Return the segments of an answer, as a dict: name -> (span in characters, claims).

    The segment of sentence N, from 0, has the name "segment:N". Sentences without claims are left
    out. With `evaluation="holistic"`, the only segment is "response", from the first sentence with
    claims to the last.

    Args:
        read: the claims and sentences that an extractor found in the response.
    """
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
    """Return training rows for a reward model, and a `Card` with counts.

    A row is an answer with its segments. The target of a segment is its factuality, which is
    `aggregate` of the values of its claims: 1 if the claim is supported, else 0.

    Args:
        feedbacks: sampled answers with the judge's claims and "fact" verdicts.
        reads: for each answer, the claims that are extracted in RL, if they differ from the judge's
            claims. A segment is left out if it lacks the judge's claims or these. None: RL uses the
            judge's claims.
    """
    # responses that reached the token limit are used, because RL has such responses too
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
    """Return the training row of a sample. Without a row, return why: "failed" or "no claims"."""
    if feedback.error is not None:
        return "failed"
    verdicts, response = table(feedback), feedback.response
    # true because all extractors split sentences by the same rules
    assert read.sentences == feedback.sentences, response.id
    try:
        targets = {
            name: aggregate([supported(on_claim(verdicts, claim, "fact")) for claim in own])
            for name, (_, own) in segments(response, feedback, evaluation).items()
        }
    except Unscored:
        return "failed"
    rewarded = segments(response, read, evaluation).items()
    placed = tuple(Segment(*span, targets[name]) for name, (span, _) in rewarded if name in targets)
    if not placed:
        return "no claims"
    return Judged(response.question, response.text, placed, response.token_ids)


def factuality(scorer: Scorer, evaluation: Evaluation) -> Verify:
    """Return the check "factuality": a function from responses to verdicts on their segments.

    The p of a verdict is the reward model's score of the segment. If the response is too long for
    the reward model, its verdicts are failures.
    """

    def verify(batch: Batch) -> list[Checked]:
        found = [segments(response, read, evaluation) for response, read in batch]
        # rows have the sampled token ids, so that the reward model reads the policy's tokens
        rows = [unlabelled(response, own) for (response, _), own in zip(batch, found, strict=True)]
        # responses without segments, such as refusals, need no forward pass
        scores = iter(scorer.score([row for row in rows if row.segments]))
        return [
            Checked(_verdicts(own, next(scores), scorer.longest) if own else ()) for own in found
        ]

    return verify


def _verdicts(targets: Iterable[str], values: Sequence[float], longest: int) -> tuple[Verdict, ...]:
    by = "reward model"
    if values:
        scores = zip(targets, values, strict=True)
        return tuple(Verdict(target, "factuality", p=value, by=by) for target, value in scores)
    message = f"prompt and answer have more tokens than the reward model's context of {longest}"
    error = Failure("verify", "too_long", message)
    return tuple(Verdict(target, "factuality", by=by, error=error) for target in targets)


def unlabelled(response: Response, found: Segments) -> Judged:
    """Return a response with its segments, as input that a reward model can score.

    All segments have the target 0, which is a placeholder, so the result cannot be used to train a
    reward model. If the policy sampled the response, the sampled token ids are included.

    Args:
        found: the segments of the response, from `segments`.
    """
    placed = tuple(Segment(*span) for span, _ in found.values())
    ids = response.token_ids if response.source == "sampled" else ()
    return Judged(response.question, response.text, placed, ids)


def reference_values(feedbacks: Iterable[Feedback]) -> dict[str, float | Failure]:
    """Return question id -> mean factuality of the segments in the reference model's answers.

    * If the answers to a question have no segments, the question gets the mean over all segments of
      all questions *(ours)*.
    * If the rewards of all answers to a question are None, the question gets a `Failure`.
    * If no answer to any question has a segment, all questions get a `Failure`.

    Args:
        feedbacks: the reference model's answers with their rewards. A reward is the sum of the
            factuality of an answer's segments.
    """
    sums: dict[str, tuple[float, float]] = {}  # by question: total value and number of segments
    failed: dict[str, float | Failure] = {}
    for feedback in feedbacks:
        question, reward = feedback.response.question.id, feedback.rewards["forag"]
        if reward.value is None:
            failed[question] = reward.error or Failure(
                "reward", "no_verdict", "the reference model's answer has no reward"
            )
        else:
            value, count = sums.get(question, (0.0, 0.0))
            sums[question] = (value + reward.value, count + reward.parts["segments"])
    segment_count = sum(count for _, count in sums.values())
    if not segment_count:
        message = "no answer of the reference model makes a claim: inspect the cold start's samples"
        return failed | dict.fromkeys(sums, Failure("reward", "no_verdict", message))
    # with 0 instead of the mean, any answer to a question without segments would earn a reward
    mean = sum(value for value, _ in sums.values()) / segment_count
    return failed | {
        question: value / count if count else mean for question, (value, count) in sums.items()
    }


def baseline(values: Mapping[str, float | Failure]) -> Verify:
    """Return the check "baseline": a function from responses to one verdict on each response.

    Args:
        values: question id -> p of the verdict, from `reference_values`. If the value is a
            `Failure` or missing, the verdict is a failure.
    """

    def verdict(question: str) -> Verdict:
        message = f"the reference model has no answer to question '{question}'"
        value = values.get(question, Failure("verify", "not_probed", message))
        if isinstance(value, Failure):
            return Verdict("response", "baseline", by="reference", error=value)
        return Verdict("response", "baseline", p=value, by="reference")

    return lambda batch: [Checked((verdict(response.question.id),)) for response, _ in batch]
