"""Tables of what `benchmarks/findings.py` stored: statements with what came of them, and the
arms side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import reproduce

BIOGRAPHIES = (
    "test",
    (
        ("factscore_on_subject", "", "FactScore, on subject"),
        ("supported_claims", "known", "true claims, known people"),
        ("unsupported_claims", "unknown", "claims astray, unknown people"),
        ("responded", "unknown", "answered, unknown people"),
    ),
)
OUTCOMES = (
    "test",
    (
        ("accuracy", "", "right"),
        ("abstention", "", "refused"),
        ("hallucination", "", "wrong"),
        ("accuracy", "known", "right, known facts"),
        ("abstention", "unknown", "refused, unknown people"),
    ),
)
LONG = (
    "test",
    (
        ("precision_on_subject", "", "precision, on subject"),
        ("recall@6", "", "recall@6"),
        ("f1@6", "", "F1@6"),
        ("recall@6", "half", "recall@6, half-known"),
        ("f1@6", "", "F1@6, greedy", "greedy"),
        ("responded", "", "answered, unknown people", "unknown"),
    ),
)
# of a method: question set, and (metric, tier, heading[, another question set]) of the arms' table
ARMS = {
    "rlfh": BIOGRAPHIES,
    "rlfh_sweep": BIOGRAPHIES,
    "knowrl": OUTCOMES,
    "knowrl_dose": OUTCOMES,
    "knowrl_sweep": OUTCOMES,
    "klcf": LONG,
    "klcf_sweep": LONG,
    "klcf_sft": LONG,
    "forag": (
        "test",
        (
            ("fact_per_query", "", "answers wholly factual"),
            ("fact_per_sentence", "", "sentences factual"),
            ("coherent", "", "coherent"),
            ("facets", "", "facets"),
            ("claims", "", "claims"),
            ("repetition", "", "repeated"),
            ("citation_recall", "", "citation recall"),
            ("citation_precision", "", "citation precision"),
            ("length", "", "words"),
        ),
    ),
}


def statements(found: Mapping[str, Any]) -> list[list[str]]:
    """A row a contrast, with the results in bold."""
    return [
        [id, result and f"**{result}**", *told] for id, result, *told in reproduce.statements(found)
    ]


def arms(found: Mapping[str, Any], method: str) -> tuple[list[str], list[list[str]]]:
    """Headings and a row an arm: the means over its seeds."""
    asked, columns = ARMS[method]
    seeds = {
        run["arm"]: [other for other in found["runs"] if other["arm"] == run["arm"]]
        for run in found["runs"]
    }
    rows = [
        [
            arm,
            *(_mean(sets[(*own, asked)[0]], metric, tier) for metric, tier, _, *own in columns),
            *_took(seeds.get(arm, [])),
        ]
        for arm, sets in found["means"].items()
    ]
    return ["arm", *(column[2] for column in columns), "seeds", "settings"], rows


def _mean(tiers: Mapping[str, Mapping[str, float]], metric: str, tier: str) -> str:
    value = tiers.get(tier, {}).get(metric)
    return "–" if value is None else f"{value:.3f}"


def _took(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    changed = [
        setting
        for run in runs[:1]
        for setting in run["set"]
        if not setting.endswith("eval_samples=0")
    ]
    return [str(len(runs) or "–"), " ".join(f"`{setting}`" for setting in changed) or "–"]


PAPER = {  # KLCF's table 5, a prompt: seconds, times ours took, searches, tokens in and out
    "serial": {
        "FActScore": ("198.06", "3.46", "51.7", "55666", "5702"),
        "VeriScore": ("234.50", "4.09", "32.6", "335910", "3443"),
        "KLCF": ("57.29", "", "0", "1458", "855"),
    },
    "parallel": {
        "FActScore": ("10.58", "5.24", "52.0", "56678", "5926"),
        "VeriScore": ("10.90", "5.40", "32.6", "334078", "3407"),
        "KLCF": ("2.02", "", "0", "1453", "851"),
    },
}
COSTS = [
    "answers",
    "rewarded by",
    "seconds a prompt",
    "in all",
    "times KLCF's [95 %]",
    "without its model",
    "calls",
    "searches",
    "tokens in",
    "tokens out",
    "delays",
]


def costs(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and a row for each way of rewarding in each part, the paper's below its own kind."""
    rows: list[list[str]] = []
    for mode in PAPER:
        for name in (name for name in found["parts"] if name.endswith(f", {mode}")):
            rows += _costs(name, found["parts"][name])
        rows += [
            [
                f"*the paper's, {mode}*",
                way,
                seconds,
                "–",
                times or "–",
                "–",
                "–",
                searches,
                given,
                written,
                "–",
            ]
            for way, (seconds, times, searches, given, written) in PAPER[mode].items()
        ]
    return COSTS, rows


def _costs(name: str, part: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for way, told in part["ways"].items():
        ratio, bare = part["ratios"].get(way), part["ratios_without_passes"].get(way)
        rows.append(
            [
                f"{name}: {part['prompts']} of {part['claims']:.1f} claims",
                way,
                f"{told['seconds']:.3f}",
                f"{told['seconds'] * part['prompts']:.1f}",
                (
                    f"**{ratio['value']:.2f}** [{ratio['low']:.2f}, {ratio['high']:.2f}]"
                    f" n={ratio['n']}"
                    if ratio
                    else "–"
                ),
                f"{bare:.2f}" if bare else "–",
                f"{told['calls']:.1f}",
                f"{told['searches']:.1f}",
                f"{told['tokens_in']:.0f}",
                f"{told['tokens_out']:.0f}",
                f"{told['delays']:.0%}",
            ]
        )
    return rows


def truth_arms(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and a row for each set of claims that a truthfulness model has learnt from, the
    means over the seeds; AUC beside `own` with its interval."""
    beside = {one["minus"]: one for one in found["findings"]}
    rows = []
    for arm in dict.fromkeys(run["arm"] for run in found["runs"]):
        runs = [run for run in found["runs"] if run["arm"] == arm]
        means = [
            f"{sum(run[name] for run in runs) / len(runs):.3f}"
            for name in ("auc", "accuracy", "f1", "ece")
        ]
        each = " ".join(f"{run['auc']:.3f}" for run in runs)
        one = beside.get(arm)
        said = (
            f"**{one['verdict']}** {one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
            if one
            else "–"
        )
        rows.append([f"`{arm}`", *means, each, f"{one['id']} {said}" if one else said])
    return ["learnt from", "AUC", "accuracy", "F1", "ECE", "AUC of each seed", "`own` − this"], rows
