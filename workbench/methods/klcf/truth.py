"""The check "truth" of KLCF (arXiv 2509.23765, sections 2.3.1 and B.1): P(true) of each claim of an
answer.

The truthfulness model is a scalar head with LoRA on the base model, so it can only judge what the
base has learned. `workbench.training.reward_model` trains it. It reads a claim as the answer to
its question.
"""

from collections.abc import Callable, Sequence

from workbench.methods.klcf.checklists import Labelled
from workbench.methods.klcf.facts import LABELS
from workbench.text import in_answer
from workbench.training.scorer import Judged, Scorer, as_whole
from workbench.types import Checked, Claims, Failure, Question, Response, Verdict, Verify

# texts -> a probability for each; None for a text that is too long
TextScorer = Callable[[Sequence[Judged]], Sequence[float | None]]


def as_read(question: Question, claim: str, target: float, specials: Sequence[str] = ()) -> Judged:
    """Return a labelled claim as the whole answer to its question; `specials` are removed."""
    return as_whole(question, " ".join(claim.split()), target, specials)


def truth_examples(rows: Sequence[Labelled], specials: Sequence[str] = ()) -> list[Judged]:
    """Return labelled claims as training rows: target 1 for supported, 0 for refuted."""
    return [
        as_read(row.question, row.claim, float(row.label == LABELS[0]), specials) for row in rows
    ]


def scorer_of(model: Scorer) -> TextScorer:
    """Return a reward model as a function from texts to probabilities."""
    return lambda rows: [values[0] if values else None for values in model.score(rows)]


def text_values(
    score: TextScorer, texts: Sequence[tuple[Question, str]], specials: Sequence[str] = ()
) -> list[float]:
    """Return a probability for each text, scored as the whole answer to its question.

    Equal texts are scored once.

    An empty or too long text has p = 0, not a failure: otherwise a response could avoid its
    reward.
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
    """Return the check "truth", which gives each claim P(true) by the function `score`.

    All claims of a batch are scored together. An empty claim is a failure.

    Args:
        by: the name of the scorer in the verdicts.
        specials: control tokens, which are removed from the claims.
    """

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
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
