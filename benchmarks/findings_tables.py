"""Tables of what `benchmarks/findings.py` stored: statements with what came of them, and the arms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench import reproduce

BIOGRAPHIES = ("test", (
    ("factscore_on_subject", "", "FactScore, on subject"),
    ("supported_claims", "known", "true claims, known people"),
    ("unsupported_claims", "unknown", "claims astray, unknown people"),
    ("responded", "unknown", "answered, unknown people"),
))  # fmt: skip
OUTCOMES = ("test", (
    ("accuracy", "", "right"), ("abstention", "", "refused"), ("hallucination", "", "wrong"),
    ("accuracy", "known", "right, known facts"), ("abstention", "unknown", "refused, unknown people"),
))  # fmt: skip
LONG = ("test", (
    ("precision_on_subject", "", "precision, on subject"), ("recall@6", "", "recall@6"), ("f1@6", "", "F1@6"),
    ("recall@6", "half", "recall@6, half-known"), ("f1@6", "", "F1@6, greedy", "greedy"),
    ("responded", "", "answered, unknown people", "unknown"),
))  # fmt: skip
ARMS = {  # of a method: question set, and (metric, tier, heading[, another question set]) of the arms' table
    "rlfh": BIOGRAPHIES,
    "rlfh_sweep": BIOGRAPHIES,
    "knowrl": OUTCOMES,
    "knowrl_dose": OUTCOMES,
    "knowrl_sweep": OUTCOMES,
    "klcf": LONG,
    "klcf_sft": LONG,
    "forag": ("test", (
        ("fact_per_query", "", "answers wholly factual"), ("fact_per_sentence", "", "sentences factual"),
        ("coherent", "", "coherent"), ("facets", "", "facets"), ("claims", "", "claims"), ("repetition", "", "repeated"),
        ("citation_recall", "", "citation recall"), ("citation_precision", "", "citation precision"), ("length", "", "words"),
    )),
}  # fmt: skip


def statements(found: Mapping[str, Any]) -> list[list[str]]:
    """A row a contrast, with the results in bold."""
    return [[id, result and f"**{result}**", *told] for id, result, *told in reproduce.statements(found)]


def arms(found: Mapping[str, Any], method: str) -> tuple[list[str], list[list[str]]]:
    """Headings and a row an arm: the means over its seeds."""
    asked, columns = ARMS[method]
    seeds = {run["arm"]: [other for other in found["runs"] if other["arm"] == run["arm"]] for run in found["runs"]}
    rows = [
        [arm, *(_mean(sets[(*own, asked)[0]], metric, tier) for metric, tier, _, *own in columns), *_took(seeds.get(arm, []))]
        for arm, sets in found["means"].items()
    ]
    return ["arm", *(column[2] for column in columns), "seeds", "settings"], rows


def _mean(tiers: Mapping[str, Mapping[str, float]], metric: str, tier: str) -> str:
    value = tiers.get(tier, {}).get(metric)
    return "–" if value is None else f"{value:.3f}"


def _took(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    changed = [setting for run in runs[:1] for setting in run["set"] if not setting.endswith("eval_samples=0")]
    return [str(len(runs) or "–"), " ".join(f"`{setting}`" for setting in changed) or "–"]
