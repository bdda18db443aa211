"""The truthfulness model of KLCF (arXiv 2509.23765, sections 2.3.1 and B.1): a scalar head with
LoRA on the base model that reads a claim as an answer to its question, and the check "truth"
that is made of it.

As it is tuned from the base, it can only tell what that has learnt: see
`workbench.training.reward_model` for the training. In its place, *(ours)*, the base's own
confidence in the claim, calibrated on the same claims and with no weight tuned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.methods.held_out import calibration, strangers
from workbench.methods.klcf.checklists import LABELS, Labelled, key
from workbench.metrics.rows import share
from workbench.policies.generate import Policy
from workbench.policies.hf import token_logprobs
from workbench.runs.folder import policy_hash, read_json
from workbench.text import in_answer
from workbench.training.rows import encode_example
from workbench.training.scorer import Judged, Scorer, as_whole
from workbench.types import (
    Checked,
    Claim,
    Claims,
    Failure,
    JsonObject,
    Question,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)
from workbench.util.jsonl import write_json

BATCH = 16  # claims whose probability the base tells at once: rows × tokens × vocabulary
# in the stage of a truthfulness model: how the base's confidence was calibrated
CONFIDENCE = "confidence.json"
LEAST, LARGEST = 1e-30, 30.0  # a confidence above 0, and how sure a logit may be
LONGEST = 2048  # tokens of a question and a claim that the base is asked about

# claims -> p of each; None is one that is too long
Valued = Callable[[Sequence[Judged]], Sequence[float | None]]


def as_read(question: Question, claim: str, target: float, specials: Sequence[str] = ()) -> Judged:
    """A claim as the whole answer to its question: see `as_whole`."""
    return as_whole(question, " ".join(claim.split()), target, specials)


def truth_examples(rows: Sequence[Labelled], specials: Sequence[str] = ()) -> list[Judged]:
    """Labelled claims as rows for a reward model: 1 for a supported one, 0 for a refuted one."""
    return [
        as_read(row.question, row.claim, float(row.label == LABELS[0]), specials) for row in rows
    ]


def text_values(
    score: Valued, texts: Sequence[tuple[Question, str]], specials: Sequence[str] = ()
) -> list[float]:
    """p of each text as the whole answer to its question; equal ones are scored once. p is 0 of
    an empty text, and of one that is too long (None): a response could escape its reward by it.
    """
    rows = {
        (question.id, question.text, text): as_whole(question, text, specials=specials)
        for question, text in texts
        if text.strip()
    }
    values = dict(zip(rows, score(list(rows.values())) if rows else [], strict=True))
    found = [values.get((question.id, question.text, text)) for question, text in texts]
    return [0.0 if p is None else p for p in found]


def balanced(rows: Sequence[Judged]) -> list[Judged]:
    """Of the rows, each claim of a question once, as many true as false ones, the first of each:
    table 12 measures by such.
    """
    distinct = list({(row.question.id, key(row.text)): row for row in reversed(rows)}.values())[
        ::-1
    ]
    true, false = (
        [row for row in distinct if row.segments[0].target == target] for target in (1.0, 0.0)
    )
    count = min(len(true), len(false))
    return [*true[:count], *false[:count]]


def accuracy_and_f1(
    found: Sequence[tuple[float, float]], threshold: float = 0.5
) -> dict[str, float | None]:
    """Return `accuracy` and `f1` (class "true") of values above `threshold`; None if empty."""
    if not found:
        return {"accuracy": None, "f1": None}
    called = [value > threshold for value, _ in found]
    true = [target == 1 for _, target in found]
    hits = sum(map(all, zip(called, true, strict=True)))
    right = sum(one == other for one, other in zip(called, true, strict=True))
    return {
        "accuracy": right / len(found),
        "f1": share(2 * hits, sum(called) + sum(true)),
    }


def values_of(scorer: Scorer) -> Valued:
    """A truthfulness model as a function of claims."""
    return lambda rows: [values[0] if values else None for values in scorer.score(rows)]


def measured(
    score: Valued, base: Policy, learnt: Sequence[Judged], held: Sequence[Judged]
) -> JsonObject:
    """Measure a truthfulness model on balanced claims of held-out questions (table 12), and the
    base model without tuning as `untuned`.

    `strangers` counts claims about people that are not in the training claims.
    """
    rows = balanced(held)
    scored = [
        (row, value)
        for row, value in zip(rows, score(rows), strict=True)
        if value is not None and math.isfinite(value)
    ]
    found = [(value, row.segments[0].target) for row, value in scored]
    counts = {
        "claims": len(found),
        "strangers": strangers(learnt, [row for row, _ in scored]),
        "too_long": len(rows) - len(scored),
    }
    return {
        **counts,
        **calibration(found),
        **accuracy_and_f1(found),
        "untuned": untuned(base, learnt, held),
    }


def untuned(policy: Policy, learnt: Sequence[Judged], held: Sequence[Judged]) -> JsonObject:
    """How the base does by itself, by how probable it finds a claim as the answer (the geometric
    mean of its tokens' probabilities), with the threshold that tells most of the claims that the
    model has learnt from apart *(ours)*."""
    seen, rows = balanced(learnt), balanced(held)
    values = confidences(policy, [*seen, *rows])
    found = [
        (value, row.segments[0].target) for value, row in zip(values, [*seen, *rows], strict=True)
    ]
    threshold, measured = best_threshold(found[: len(seen)]), found[len(seen) :]
    return {
        "threshold": threshold,
        "auc": calibration(measured)["auc"],
        **accuracy_and_f1(measured, threshold),
    }


def best_threshold(found: Sequence[tuple[float, float]]) -> float:
    """Return the lowest threshold with the best accuracy; 0.5 if there is none."""
    best, right = 0.5, -1
    ahead = sum(target == 1 for _, target in found)  # right if every claim were called true
    for value, target in sorted(found):
        ahead += 1 if target == 0 else -1
        if ahead > right:
            best, right = value, ahead
    return best


def confidences(policy: Policy, rows: Sequence[Judged]) -> list[float]:
    """The geometric mean of the probabilities that a policy gives to the tokens of each claim,
    its end left out.
    """
    import torch

    pairs = [encode_example(policy.tokenizer, row.question, row.text) for row in rows]
    values: list[float] = []
    with torch.no_grad():
        for start in range(0, len(pairs), BATCH):
            part = [(prompt, said[:-1]) for prompt, said in pairs[start : start + BATCH]]
            for logprobs in token_logprobs(policy.model, policy.tokenizer.pad_token_id, part):
                values.append(math.exp(math.fsum(logprobs) / len(logprobs)))
    return values


@dataclass(frozen=True)
class Confidence:
    """p = σ(slope · x + offset), where x is the mean log-probability that the base gives to the
    tokens of a claim as the answer to its question (Platt's scaling of it), and slope is above
    0: what is more probable is held to be truer."""

    policy: Policy
    slope: float
    offset: float

    def score(self, rows: Sequence[Judged]) -> list[float | None]:
        """p of each claim, NaN where the base gives none, which grading makes a failure of; None
        for what is too long.
        """
        short, values = _short(self.policy, rows), list[float | None]([None] * len(rows))
        found = confidences(self.policy, [rows[number] for number in short])
        for number, confidence in zip(short, found, strict=True):
            if math.isfinite(confidence):
                logit = self.slope * _log(confidence) + self.offset
                values[number] = 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, logit))))
            else:
                values[number] = math.nan
        return values

    def save(self, out: Path) -> None:
        stored = {"slope": self.slope, "offset": self.offset, "base": _which(self.policy)}
        write_json(out / CONFIDENCE, stored)


def calibrated(policy: Policy, learnt: Sequence[Judged]) -> Confidence:
    """The base's confidence, fitted to claims that are labelled; those that are too long are
    left out.

    Raises:
        WorkbenchError: not both true and false ones, or the base finds the false ones more
        probable: then there is no
            confidence in what is true that could be paid.
    """
    rows = [learnt[number] for number in _short(policy, learnt)]
    found = [
        (value, row.segments[0].target)
        for value, row in zip(confidences(policy, rows), rows, strict=True)
    ]
    points = [(_log(value), target) for value, target in found if math.isfinite(value)]
    if len({target for _, target in points}) < 2:
        raise WorkbenchError(
            "the claims to calibrate on are not both true and false ones: prepare more questions or"
            " samples"
        )
    slope, offset = platt(points)
    if not (slope > 0 and math.isfinite(offset)):
        raise WorkbenchError(
            "the base finds false claims as probable as true ones, or more so: its confidence tells"
            " nothing that could be paid; set klcf.rewarded to model or judge"
        )
    return Confidence(policy, slope, offset)


def _which(policy: Policy) -> str:
    """Return a digest of the base's weights, or the name of a public model."""
    return policy_hash(policy.name) or policy.name


def _short(policy: Policy, rows: Sequence[Judged]) -> list[int]:
    """The numbers of the rows that are not too long, with their questions; the longest first."""
    longest = min(int(getattr(policy.model.config, "max_position_embeddings", LONGEST)), LONGEST)
    lengths = [
        sum(map(len, encode_example(policy.tokenizer, row.question, row.text))) for row in rows
    ]
    return sorted(
        (number for number, length in enumerate(lengths) if length <= longest),
        key=lambda number: -lengths[number],
    )


def load_confidence(folder: Path, policy: Policy) -> Confidence:
    """What `save` has written.

    Raises:
        WorkbenchError: it is not there, damaged, or of another model.
    """
    stored = read_json(folder / CONFIDENCE) or {}
    slope, offset = stored.get("slope"), stored.get("offset")
    if not (
        isinstance(slope, float)
        and isinstance(offset, float)
        and 0 < slope < math.inf
        and math.isfinite(offset)
    ):
        raise WorkbenchError(
            f"'{folder / CONFIDENCE}' is missing or damaged: remove the stage's folder, and it is"
            " made anew"
        )
    if stored.get("base") != _which(policy):
        raise WorkbenchError(
            f"'{folder / CONFIDENCE}' was fitted to another model than '{policy.name}': name"
            " that one"
        )
    return Confidence(policy, slope, offset)


def platt(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(slope, offset) of the logistic regression of targets, 0 or 1, on values (Platt, 1999):
    the targets are drawn in as his are, so that the slope stays finite where the values tell all
    targets apart."""
    import torch

    values, targets = (torch.tensor(part, dtype=torch.double) for part in zip(*found, strict=True))
    true, false = float(targets.sum()), float((1 - targets).sum())
    drawn_in = targets * (true + 1) / (true + 2) + (1 - targets) / (false + 2)
    fitted = torch.zeros(2, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([fitted], max_iter=200, line_search_fn="strong_wolfe")
    # nearly independent of the slope, the offset there is found in few steps
    middle = values.mean()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        logits = fitted[0] * (values - middle) + fitted[1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, drawn_in)
        loss.backward()
        return loss

    optimizer.step(closure)
    slope, there = fitted.tolist()
    return slope, there - slope * float(middle)


def _log(confidence: float) -> float:
    return math.log(max(confidence, LEAST))


def truth(scorer: Scorer, by: str = "truthfulness model") -> Verify:
    """Aspect "truth": p of every claim that an answer makes; all of a batch's in few forward
    passes, those in the same words about the same question once."""
    return by_claim(values_of(scorer), by, tuple(scorer.tokenizer.all_special_tokens))


def own_truth(confidence: Confidence, by: str = "the base's confidence") -> Verify:
    """Aspect "truth" by the base's calibrated confidence."""
    return by_claim(confidence.score, by, tuple(confidence.policy.tokenizer.all_special_tokens))


def by_claim(score: Valued, by: str, specials: Sequence[str] = ()) -> Verify:
    """Return the check "truth" from a scoring function; an empty claim is a failure."""

    def verdict(claim: Claim, p: float) -> Verdict:
        target = f"claim:{claim.id}"
        if claim.text.strip():
            return Verdict(target, "truth", p=p, by=by)
        empty = Failure("verify", "unparsed", "the claim is empty", claim.text)
        return Verdict(target, "truth", by=by, error=empty)

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        claims = [list(filter(in_answer(response), read.claims)) for response, read in batch]
        texts = [
            (response.question, " ".join(claim.text.split()))
            for (response, _), own in zip(batch, claims, strict=True)
            for claim in own
        ]
        values = iter(text_values(score, texts, specials))
        return [Checked(tuple(verdict(claim, next(values)) for claim in own)) for own in claims]

    return verify
