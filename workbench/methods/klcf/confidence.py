"""Compute P(true) of a claim from the base model's own confidence, calibrated on labelled claims.

This is an alternative to KLCF's truthfulness model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from workbench.policies.generate import Policy
from workbench.policies.hf import token_logprobs
from workbench.policies.load import adapter_base, adapter_folder
from workbench.runs.folder import policy_hash, read_json
from workbench.training.loading import positions
from workbench.training.rows import encode_example
from workbench.training.scorer import Judged
from workbench.types import WorkbenchError
from workbench.util.grouping import split_batches
from workbench.util.jsonl import write_json

CONFIDENCE = "confidence.json"
BATCH = 16  # claims in a forward pass; its logits have claims × tokens × vocabulary entries
MOST_TOKENS = 4096  # most tokens of a question and a claim, if the model has that many positions
LOWEST, LARGEST = 1e-30, 30.0  # bounds of a confidence and of the absolute value of a logit


def confidences(policy: Policy, rows: Sequence[Judged]) -> list[float]:
    """Return the base model's confidence in each claim, from 0 to 1.

    The model reads the claim as the answer to a question. The confidence is the geometric mean of
    the token probabilities of the claim, without the end-of-sequence token.

    Args:
        rows: each has a question, and a claim as its text.
    """
    import torch

    encoded = (encode_example(policy.tokenizer, row.question, row.text) for row in rows)
    pairs = [(prompt, ids[:-1]) for prompt, ids in encoded]
    with torch.no_grad():
        return [
            math.exp(fmean(logprobs))
            for batch in split_batches(pairs, BATCH)
            for logprobs in token_logprobs(policy.model, policy.tokenizer.pad_token_id, batch)
        ]


@dataclass(frozen=True)
class Confidence:
    """P(true) of claims, computed from the base model's confidence by Platt scaling.

    P(true) = σ(slope · log(confidence) + offset), with slope > 0.
    """

    policy: Policy
    slope: float
    offset: float

    def score(self, rows: Sequence[Judged]) -> list[float | None]:
        """Return P(true) of each row's claim, from 0 to 1.

        A value is None if question and claim are too long for the model. It is NaN if the model's
        probabilities are not finite.
        """
        short, values = _short(self.policy, rows), list[float | None]([None] * len(rows))
        scores = confidences(self.policy, [rows[number] for number in short])
        for number, confidence in zip(short, scores, strict=True):
            values[number] = math.nan  # grading turns NaN into a failure
            if math.isfinite(confidence):
                logit = self.slope * _log(confidence) + self.offset
                values[number] = 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, logit))))
        return values

    def save(self, out: Path) -> None:
        stored = {"slope": self.slope, "offset": self.offset, "base": _base_id(self.policy)}
        write_json(out / CONFIDENCE, stored)


def load_confidence(folder: Path, policy: Policy) -> Confidence:
    """Load a `Confidence` from a folder in which `Confidence.save` stored it.

    Args:
        policy: the base model.

    Raises:
        WorkbenchError: the file is missing or damaged, or was fitted to another model.
    """
    file = folder / CONFIDENCE
    stored = read_json(file) or {}
    slope, offset = stored.get("slope"), stored.get("offset")
    if (
        not isinstance(slope, float)
        or not isinstance(offset, float)
        or not (0 < slope < math.inf and math.isfinite(offset))
    ):
        raise WorkbenchError(
            f"'{file}' is missing or damaged: remove '{folder}' and run the command again"
        )
    if stored.get("base") != _base_id(policy):
        raise WorkbenchError(
            f"'{file}' was fitted to another model than '{policy.name}': train with the model that"
            f" prepared '{folder}' (--policy), or prepare the data again with '{policy.name}'"
        )
    return Confidence(policy, slope, offset)


def calibrated(policy: Policy, rows: Sequence[Judged]) -> Confidence:
    """Fit the `Confidence` of a base model to labelled claims *(ours)*.

    Args:
        policy: the base model.
        rows: the claims, with target 1 (true) or 0 (false). Claims that are too long for the model
            are ignored.

    Raises:
        WorkbenchError: all claims have the same label, or the confidence is not higher for true
            claims than for false ones.
    """
    rows = [rows[number] for number in _short(policy, rows)]
    points = [
        (_log(value), row.segments[0].target)
        for value, row in zip(confidences(policy, rows), rows, strict=True)
        if math.isfinite(value)
    ]
    if len({target for _, target in points}) < 2:
        raise WorkbenchError(
            "the claims are all true or all false, so the base model's confidence cannot be"
            " calibrated: prepare more questions or samples"
        )
    slope, offset = platt(points)
    if not (slope > 0 and math.isfinite(offset)):
        raise WorkbenchError(
            "the base model's confidence is not higher for true claims than for false ones, so it"
            " cannot be a reward: set klcf.rewarded to model or judge"
        )
    return Confidence(policy, slope, offset)


def platt(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return (slope, offset) of a logistic regression on points (value, target 0 or 1).

    The targets are smoothed (Platt, 1999), so the slope is finite even for separable points.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    values, targets = np.array(points, dtype=float).T
    true = targets.sum()
    soft = np.where(targets == 1, (true + 1) / (true + 2), 1 / (len(targets) - true + 2))
    # each soft target becomes two weighted rows, one of each class
    columns, classes = np.tile(values, 2)[:, None], np.repeat([1, 0], len(values))
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    model.fit(columns, classes, sample_weight=np.concatenate([soft, 1 - soft]))
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def context(base: str) -> int:
    """Return the largest number of tokens of a question and a claim for which P(true) is computed.

    Args:
        base: folder or hub name of the base model; only its config is read.
    """
    adapter = adapter_folder(Path(base))
    return positions(adapter_base(adapter) if adapter else base, MOST_TOKENS)


def _short(policy: Policy, rows: Sequence[Judged]) -> list[int]:
    """Return the indices of the rows that fit into the model's context, the longest row first."""
    longest = min(getattr(policy.model.config, "max_position_embeddings", MOST_TOKENS), MOST_TOKENS)
    sizes = [
        sum(map(len, encode_example(policy.tokenizer, row.question, row.text))) for row in rows
    ]
    short = [number for number, size in enumerate(sizes) if size <= longest]
    return sorted(short, key=lambda number: -sizes[number])


def _log(confidence: float) -> float:
    return math.log(max(confidence, LOWEST))


def _base_id(policy: Policy) -> str:
    """Return a digest of the base model's weights, or its name if it is a hub model."""
    return policy_hash(policy.name) or policy.name
