"""The check "truth" of KLCF (arXiv 2509.23765, sections 2.3.1 and B.1): P(true) of each claim.

P(true) is from a truthfulness model or from the base model's confidence. `measured` computes how
well P(true) separates true from false claims (table 12).

The truthfulness model is a scalar head with LoRA on the base model, so it can only judge what the
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
        specials: the model's control tokens. In a claim, "<eos>" becomes "< e o s >", so that the
            model reads it as text.
    """
    return as_whole(question, " ".join(claim.split()), target, specials)


def truth_examples(rows: Sequence[Labelled], specials: Sequence[str] = ()) -> list[Judged]:
    """Return labelled claims as training rows: target 1 if supported, 0 if refuted.

    Args:
        specials: the model's control tokens. In a claim, "<eos>" becomes "< e o s >", so that the
            model reads it as text.
    """
    return [
        as_read(row.question, row.claim, float(row.label == LABELS[0]), specials) for row in rows
    ]


def scorer_of(model: Scorer) -> TextScorer:
    """Return a function that scores texts with a reward model; too long texts get None."""
    return lambda rows: [values[0] if values else None for values in model.score(rows)]


def text_values(
    score: TextScorer, texts: Sequence[tuple[Question, str]], specials: Sequence[str]
) -> list[float]:
    """Score each text, from 0 to 1, as the whole answer to its question.

    Equal texts with the same question are scored once. An empty or too long text gets 0.
    """
    rows = {
        (question.id, question.text, text): as_whole(question, text, specials=specials)
        for question, text in texts
        if text.strip()
    }
    values = dict(zip(rows, score(list(rows.values())) if rows else [], strict=True))
    scores = [values.get((question.id, question.text, text)) for question, text in texts]
    return [0.0 if p is None else p for p in scores]


def truth(score: TextScorer, by: str, specials: Sequence[str] = ()) -> Verify:
    """Return the check "truth": a function from responses to verdicts, with P(true) of each claim.

    All claims of a batch are scored in one call. The verdict on an empty claim is a failure.

    Args:
        score: computes P(true) of claims.
        by: the name of the scorer in the verdicts.
        specials: the model's control tokens. In a claim, "<eos>" becomes "< e o s >", so that the
            model reads it as text.
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
            verdicts = [Verdict(f"claim:{c.id}", "truth", p=next(values), by=by) for c in own]
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
    """Return metrics of a truthfulness model, and of the untuned base model, on held-out claims.

    The metrics use as many true as false claims. `strangers` counts claims about people that no
    training question is about. `too_long` counts claims without a finite score.

    Args:
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

    Accuracy and F1 use the threshold that is best on the training claims *(ours)*.
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
    """Return equal numbers of true and false claims: the first ones of each, without duplicates."""
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
    """Return accuracy and F1 (of the class "true") of (value, target) pairs.

    A claim is called true if its value is above `threshold`. It is true if its target is 1. If
    there are no pairs, both metrics are None.
    """
    if not pairs:
        return {"accuracy": None, "f1": None}
    from sklearn.metrics import accuracy_score, f1_score

    called = [value > threshold for value, _ in pairs]
    true = [target == 1 for _, target in pairs]
    f1 = f1_score(true, called, zero_division=math.nan)
    return {"accuracy": float(accuracy_score(true, called)), "f1": finite(f1)}


def best_threshold(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the threshold on the value with the best accuracy for (value, target) pairs.

    Of several best thresholds, the lowest is returned: 0 if it is best to call every claim true.
    0.5 if there are no pairs.
    """
    right = sum(target == 1 for _, target in pairs)  # if every claim is called true
    best, most = (0.0 if pairs else 0.5), right
    for value, equal in groupby(sorted(pairs), key=itemgetter(0)):
        right += sum(1 if target == 0 else -1 for _, target in equal)
        if right > most:
            best, most = value, right
    return best
