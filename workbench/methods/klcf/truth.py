"""The check "truth" of KLCF (arXiv 2509.23765, sections 2.3.1 and B.1): P(true) of each claim.

P(true) is from a truthfulness model or from the base model's confidence. `measured` computes how
well P(true) separates true from false claims (table 12).

The truthfulness model is the base model with LoRA and a scalar head. So it can only use what the
base model has learned. `workbench.training.reward_model` trains it. Its input is a question, with
the claim as the answer.
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter

from workbench.methods.held_out import calibration, count_unknown_people
from workbench.methods.klcf.checklists import Labelled
from workbench.methods.klcf.confidence import confidences
from workbench.methods.klcf.facts import LABELS, key
from workbench.policies.generate import Policy
from workbench.text import in_answer
from workbench.training.scorer import Judged, Scorer, as_whole
from workbench.types import (
    Batch,
    Checked,
    Failure,
    JsonObject,
    Question,
    Verdict,
    Verify,
)
from workbench.util.jsonl import finite

# texts, each with its question -> a probability for each text; None for a text that is too long
TextScorer = Callable[[Sequence[Judged]], Sequence[float | None]]


def as_read(question: Question, claim: str, target: float, specials: Sequence[str] = ()) -> Judged:
    """Return a row for a reward model, with a claim as the whole answer to the question.

    Args:
        target: 1 for a true claim, 0 for a false one.
        specials: the model's control tokens. In a claim, spaces are put between the characters of
            such a token, so that the model reads it as text.
    """
    return as_whole(question, " ".join(claim.split()), target, specials)


def truth_examples(rows: Sequence[Labelled], specials: Sequence[str] = ()) -> list[Judged]:
    """Return labelled claims as training rows, with target 1 if supported and 0 if refuted.

    Args:
        specials: the model's control tokens. In a claim, spaces are put between the characters of
            such a token, so that the model reads it as text.
    """
    return [
        as_read(row.question, row.claim, float(row.label == LABELS[0]), specials) for row in rows
    ]


def scorer_of(model: Scorer) -> TextScorer:
    """Return a function that scores whole texts with a reward model.

    The score of a text is from 0 to 1. It is None if the text is too long for the model.
    """
    return lambda rows: [values[0] if values else None for values in model.score(rows)]


def text_values(
    score: TextScorer, texts: Sequence[tuple[Question, str]], specials: Sequence[str]
) -> list[float | Failure]:
    """Return a score from 0 to 1 for each text, as the whole answer to its question.

    Equal texts with the same question are scored once. An empty text gets 0. A text that is too
    long for the model gets a `Failure`.

    Args:
        specials: the model's control tokens. In a text, spaces are put between the characters of
            such a token, so that the model reads it as text.
    """
    rows = {
        (question.id, question.text, text): as_whole(question, text, specials=specials)
        for question, text in texts
        if text.strip()
    }
    values = dict(zip(rows, score(list(rows.values())) if rows else [], strict=True))
    scores = [values.get((question.id, question.text, text), 0.0) for question, text in texts]
    return [_TOO_LONG if p is None else p for p in scores]


_TOO_LONG = Failure(
    "verify",
    "too_long",
    "question and text have more tokens than the model's context: lower max_new_tokens, or use a"
    " model with a longer context",
)


def verdict(target: str, aspect: str, value: float | Failure, by: str) -> Verdict:
    """Return the verdict with a text's score as `p`, or with the failure as `error`."""
    if isinstance(value, Failure):
        return Verdict(target, aspect, by=by, error=value)
    return Verdict(target, aspect, p=value, by=by)


def truth(score: TextScorer, by: str, specials: Sequence[str] = ()) -> Verify:
    """Return the check "truth": a function from responses to verdicts, with P(true) of each claim.

    All claims of a batch are scored in one call. The verdict on a claim is a failure if the claim
    is too long for the model. It is also a failure if the claim is empty, because then the
    extraction went wrong.

    Args:
        score: computes P(true) of claims.
        by: name of the model, which the verdicts store.
        specials: the model's control tokens. In a claim, spaces are put between the characters of
            such a token, so that the model reads it as text.
    """

    def verify(batch: Batch) -> list[Checked]:
        claims = [list(filter(in_answer(response), read.claims)) for response, read in batch]
        texts = [
            (response.question, " ".join(claim.text.split()))
            for (response, _), own in zip(batch, claims, strict=True)
            for claim in own
        ]
        values = iter(text_values(score, texts, specials))
        checked = []
        for own in claims:
            verdicts = [verdict(f"claim:{c.id}", "truth", next(values), by) for c in own]
            for number, claim in enumerate(own):
                if not claim.text.strip():
                    empty = Failure("verify", "unparsed", "the claim is empty", claim.text)
                    verdicts[number] = Verdict(f"claim:{claim.id}", "truth", by=by, error=empty)
            checked.append(Checked(tuple(verdicts)))
        return checked

    return verify


def measured(
    score: TextScorer, base: Policy, training: Sequence[Judged], testing: Sequence[Judged]
) -> JsonObject:
    """Return metrics of P(true) on held-out claims, and metrics of the untuned base model.

    The metrics of P(true) are those of `calibration` and `accuracy_and_f1`. They are computed on
    equal numbers of true and false claims (`balanced`). The other values are:

    * `claims`: number of scored claims
    * `too_long`: number of claims that are too long for the model or have no finite score
    * `strangers`: number of scored claims about people who do not occur in the training rows
    * `untuned`: metrics of the base model, from the function `untuned`

    Args:
        score: computes P(true) of claims.
        base: the untuned base model.
        training, testing: rows of one claim each, with target 1 (true) or 0 (false).
    """
    rows = balanced(testing)
    scored = [
        (row, value)
        for row, value in zip(rows, score(rows), strict=True)
        if value is not None and math.isfinite(value)
    ]
    pairs = [(value, row.segments[0].target) for row, value in scored]
    return {
        "claims": len(pairs),
        "strangers": count_unknown_people(training, [row for row, _ in scored]),
        "too_long": len(rows) - len(scored),
        **calibration(pairs),
        **accuracy_and_f1(pairs),
        "untuned": untuned(base, training, testing),
    }


def untuned(base: Policy, training: Sequence[Judged], testing: Sequence[Judged]) -> JsonObject:
    """Return how well the untuned base model's confidence separates true from false claims.

    The metrics are `auc`, `accuracy` and `f1` on the claims in `testing`. Accuracy and F1 use the
    confidence `threshold` that is best on the claims in `training` *(ours)*.
    """
    seen, rows = balanced(training), balanced(testing)
    values = confidences(base, [*seen, *rows])
    targets = [row.segments[0].target for row in [*seen, *rows]]
    pairs = list(zip(values, targets, strict=True))
    threshold, held_out = best_threshold(pairs[: len(seen)]), pairs[len(seen) :]
    return {
        "threshold": threshold,
        "auc": calibration(held_out)["auc"],
        **accuracy_and_f1(held_out, threshold),
    }


def balanced(rows: Sequence[Judged]) -> list[Judged]:
    """Return equal numbers of true and false claims, without duplicates.

    The first claims of each label are used.
    """
    # built from the end, so that of equal claims the first row is kept
    distinct = {(row.question.id, key(row.text)): row for row in reversed(rows)}
    true, false = (
        [row for row in reversed(distinct.values()) if row.segments[0].target == target]
        for target in (1.0, 0.0)
    )
    count = min(len(true), len(false))
    return [*true[:count], *false[:count]]


def accuracy_and_f1(
    pairs: Sequence[tuple[float, float]], threshold: float = 0.5
) -> dict[str, float | None]:
    """Return accuracy and F1 (of the class "true") for pairs (value, target).

    A claim is predicted to be true if its value is above `threshold`. It is true if its target is
    1. Without pairs, both metrics are None.
    """
    if not pairs:
        return {"accuracy": None, "f1": None}
    from sklearn.metrics import accuracy_score, f1_score

    called = [value > threshold for value, _ in pairs]
    true = [target == 1 for _, target in pairs]
    f1 = f1_score(true, called, zero_division=math.nan)
    return {"accuracy": float(accuracy_score(true, called)), "f1": finite(f1)}


def best_threshold(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the threshold with the best accuracy for pairs (value, target).

    A claim is predicted to be true if its value is above the threshold. If several thresholds are
    best, the lowest is returned. This is 0 if it is best to predict that every claim is true.
    Without pairs, the result is 0.5.
    """
    right = sum(target == 1 for _, target in pairs)  # if every claim is called true
    best, most = (0.0 if pairs else 0.5), right
    for value, equal in groupby(sorted(pairs), key=itemgetter(0)):
        right += sum(1 if target == 0 else -1 for _, target in equal)
        if right > most:
            best, most = value, right
    return best
