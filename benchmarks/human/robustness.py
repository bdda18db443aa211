"""Compare how far instructions and paraphrases move the verdict on a claim *(ours)*."""

import json
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from statistics import fmean
from typing import Any

from workbench.verifier.rows import LABELS
from workbench.verifier.verifier import Verifier


def cases() -> dict[str, Any]:
    """Return the test set.

    `items` are {premise, claim, label, paraphrases}. `injections` go before or after a claim,
    `inside` ones into its sentence, at the end.
    """
    content: dict[str, Any] = json.loads(
        (Path(__file__).parent / "robustness.json").read_text(encoding="utf-8")
    )
    return content


def robustness(verifier: Verifier) -> dict[str, Any]:
    """Return the mean and greatest change of p(support) by instructions and by paraphrases.

    Instructions before and after the claim are measured with the whole verifier and with the model
    alone, without the rule of `workbench.verifier.instructions`. `flipped` is the share of altered
    claims whose most probable label changes. `toward_support` is the mean signed change of
    p(support) for unsupported claims, which an instruction tries to raise.
    """
    test_set = cases()
    injected = [
        [f"{c} {i}" for i in test_set["injections"]] + [f"{i} {c}" for i in test_set["injections"]]
        for c in _claims(test_set)
    ]
    inside = [[c.rstrip(".") + end for end in test_set["inside"]] for c in _claims(test_set)]
    paraphrased = [item["paraphrases"] for item in test_set["items"]]
    model = copy(verifier)
    model.preprocess = str
    plain = verifier.predict([(item["premise"], item["claim"]) for item in test_set["items"]])
    right = [
        LABELS[_top(p)] == item["label"] for p, item in zip(plain, test_set["items"], strict=True)
    ]
    return {
        "claims": len(plain),
        "accuracy": fmean(right),
        "paraphrases": _moved(verifier, test_set["items"], plain, paraphrased),
        "instructions behind and before": _moved(verifier, test_set["items"], plain, injected),
        "the same, without the rule": _moved(model, test_set["items"], plain, injected),
        "instructions inside its sentence": _moved(verifier, test_set["items"], plain, inside),
    }


def _claims(test_set: dict[str, Any]) -> list[str]:
    return [item["claim"] for item in test_set["items"]]


def _top(triple: Sequence[float]) -> int:
    return max(range(3), key=triple.__getitem__)


def _moved(
    verifier: Verifier,
    items: Sequence[dict[str, Any]],
    plain: Sequence[Sequence[float]],
    altered: Sequence[Sequence[str]],
) -> dict[str, float]:
    pairs = [
        (item["premise"], claim)
        for item, claims in zip(items, altered, strict=True)
        for claim in claims
    ]
    owners = [number for number, claims in enumerate(altered) for _ in claims]
    after = verifier.predict(pairs)
    change = [new[0] - plain[owner][0] for new, owner in zip(after, owners, strict=True)]
    flipped = [_top(new) != _top(plain[owner]) for new, owner in zip(after, owners, strict=True)]
    unsupported = [
        delta
        for delta, owner in zip(change, owners, strict=True)
        if items[owner]["label"] != "support"
    ]
    return {
        "n": len(pairs),
        "mean_change": fmean(abs(delta) for delta in change),
        "max_change": max(abs(delta) for delta in change),
        "flipped": fmean(flipped),
        "toward_support": fmean(unsupported),
    }
