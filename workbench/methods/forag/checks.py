"""Two checks that FoRAG's training adds (arXiv 2406.13779, section 5.2): "factuality", a reward
model's score of each segment (sentence), and "baseline", the mean score of the reference model's
own answers to the question.
"""

from collections.abc import Iterable, Mapping, Sequence

from workbench.methods.forag.config import Evaluation
from workbench.methods.forag.segments import Segments, segments
from workbench.training.scorer import Judged, Scorer, Segment
from workbench.types import Checked, Claims, Failure, Feedback, Response, Verdict, Verify


def factuality(scorer: Scorer, evaluation: Evaluation) -> Verify:
    """Return the check "factuality", which gives each segment a probability p of being factual.

    An answer that is longer than the reward model's context is a failure and not unfactual: the
    sampling settings bound its length, so the policy cannot avoid its reward by writing more.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        found = [segments(response, read, evaluation) for response, read in batch]
        # the reward model reads the sampled ids, so that its tokens are those of the policy
        rows = [unlabelled(response, own) for (response, _), own in zip(batch, found, strict=True)]
        # refusals have no segments and need no forward pass
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
    """Return the response as a row for a reward model, without targets."""
    placed = tuple(Segment(*span) for span, _ in found.values())
    ids = response.token_ids if response.source == "sampled" else ()
    return Judged(response.question, response.text, placed, ids)


def reference_values(feedbacks: Iterable[Feedback], method: str) -> dict[str, float | Failure]:
    """Return by question id the mean segment value of the reference model's answers, or a failure.

    For a question whose answers have no segments, the mean over all questions is used *(ours)*:
    with a baseline of 0 any answer to that question would earn a reward. If no answer to any
    question has a segment, every question has a failure.
    """
    sums: dict[str, tuple[float, float]] = {}  # total value and number of segments
    failed: dict[str, float | Failure] = {}
    for feedback in feedbacks:
        question, reward = feedback.response.question.id, feedback.rewards[method]
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
    mean = sum(value for value, _ in sums.values()) / segment_count
    return failed | {
        question: value / count if count else mean for question, (value, count) in sums.items()
    }


def baseline(values: Mapping[str, float | Failure]) -> Verify:
    """Return the check "baseline", from the values that `reference_values` returns."""

    def verdict(question: str) -> Verdict:
        message = f"the reference model has no answer to question '{question}'"
        value = values.get(question, Failure("verify", "not_probed", message))
        if isinstance(value, Failure):
            return Verdict("response", "baseline", by="reference", error=value)
        return Verdict("response", "baseline", p=value, by="reference")

    return lambda batch: [Checked((verdict(response.question.id),)) for response, _ in batch]
