"""Tables of the results of `benchmarks/findings.py`: statements with their results, and arms."""

import tomllib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from benchmarks import reproduce
from benchmarks.tables import cell

OUTCOMES = (
    "test",
    (
        ("accuracy", "", "correct"),
        ("abstention", "", "abstained"),
        ("hallucination", "", "wrong"),
        ("accuracy", "known", "correct, known facts"),
        ("abstention", "unknown", "abstained, unknown people"),
    ),
)
KLCF = (
    "test",
    (
        ("precision_on_subject", "", "precision, on subject"),
        ("recall@6", "", "recall@6"),
        ("f1@6", "", "F1@6"),
        *(
            (metric, tier, f"{metric.split('_')[0]}, {words}")
            for metric in ("precision_on_subject", "recall@6")
            for tier, words in (("half", "half-known"), ("partial", "partly known"))
        ),
    ),
)
ANSWERED = ("test", (*KLCF[1], ("responded", "", "answered")))
SHORT = (
    "short",
    (
        *((rate, "", rate) for rate in ("accuracy", "abstention", "hallucination")),
        ("truthfulness", "", "**truthfulness**"),
        ("accuracy", "known", "accuracy, known"),
        ("hallucination", "unknown", "hallucination, unknown"),
        ("truthfulness", "", "truthfulness, sampled", "sampled"),
        ("hallucination", "", "hallucination, baiting", "baiting"),
        ("accuracy", "", "false premises", "false_premise"),
    ),
)
REAL = (
    "test",
    (
        *((rate, "", rate) for rate in ("accuracy", "abstention", "hallucination", "truthfulness")),
        ("truthfulness", "", "truthfulness, sampled", "sampled"),
        *(("accuracy", tier, f"accuracy, {tier}") for tier in ("top", "middle", "rare")),
        *(("abstention", tier, f"abstention, {tier}") for tier in ("top", "middle", "rare")),
    ),
)
JUDGED = (
    "test",
    (
        ("factscore", "", "FactScore by the verifier"),
        ("table_precision", "", "by the table"),
        ("overrated", "", "overrated"),
        ("table_true", "", "true claims"),
        ("table_false", "", "false claims"),
        ("words", "", "words"),
        ("table_precision", "", "by the table, sampled", "sampled"),
        ("overrated", "", "overrated, sampled", "sampled"),
        ("table_true", "", "true claims, sampled", "sampled"),
        ("table_false", "", "false claims, sampled", "sampled"),
        ("words", "", "words, sampled", "sampled"),
    ),
)
DOUBTFUL = (
    "sampled",
    (
        ("factscore_on_subject", "", "FactScore, half-known and partly known, sampled"),
        ("factscore_on_subject", "half", "half-known"),
        ("factscore_on_subject", "partial", "partly known"),
        ("factscore_on_subject", "half", "half-known, greedy", "test"),
        ("factscore_on_subject", "partial", "partly known, greedy", "test"),
        ("supported_claims", "", "supported claims"),
        ("unsupported_claims", "", "unsupported claims"),
        ("responded", "", "answered"),
        ("supported_claims", "known", "supported claims, known, greedy", "test"),
        ("unsupported_claims", "unknown", "unsupported claims, unknown, greedy", "test"),
        ("responded", "unknown", "answered, unknown, greedy", "test"),
    ),
)

FORAG = (
    "test",
    (
        ("fact_per_query", "", "wholly factual answers"),
        ("fact_per_sentence", "", "factual sentences"),
        ("coherent", "", "coherent"),
        ("facets", "", "facets"),
        ("claims", "", "claims"),
        ("repetition", "", "repeated"),
        ("citation_recall", "", "citation recall"),
        ("citation_precision", "", "citation precision"),
        ("length", "", "words"),
    ),
)

# by method: question set, and columns of the arms' table (metric, tier, heading[, question set])
ARMS = {
    "truthrl": SHORT,
    "truthrl_retrieval": (
        *SHORT[:1],
        (*SHORT[1][:-2], ("truthfulness", "", "without passages", "closed")),
    ),
    "truthrl_reasoning": (
        *SHORT[:1],
        (
            *SHORT[1][:6],
            ("factscore", "", "share true, thoughts", "thoughts"),
            ("claims", "", "claims, thoughts", "thoughts"),
        ),
    ),
    "truthrl_real": REAL,
    "truthrl_gpu": REAL,
    "truthrl_smollm2": REAL,
    "truthrl_smollm2_cold": REAL,
    "truthrl_smollm2_apart": REAL,
    "rlfh_real": JUDGED,
    "rlfh_real_guarded": JUDGED,
    "rlfh_smollm2": JUDGED,
    "klcf_smollm2": JUDGED,
    "knowrl_smollm2": (
        "test",
        (
            *((rate, "", rate) for rate in ("accuracy", "abstention", "hallucination")),
            ("truthfulness", "", "truthfulness"),
            ("factscore", "", "share true, thoughts", "thoughts"),
            ("claims", "", "claims, thoughts", "thoughts"),
        ),
    ),
    "forag_smollm2": (
        "test",
        (
            ("factscore", "", "FactScore by the verifier"),
            ("claims", "", "claims"),
            ("factscore", "", "FactScore, sampled", "sampled"),
            ("claims", "", "claims, sampled", "sampled"),
        ),
    ),
    "rlfh": DOUBTFUL,
    "rlfh_long": DOUBTFUL,
    "rlfh_variants": DOUBTFUL,
    "rlfh_rates": (
        "sampled",
        (
            ("factscore_on_subject", "", "FactScore, half-known and partly known, sampled"),
            ("factscore_on_subject", "half", "half-known"),
            ("factscore_on_subject", "partial", "partly known"),
            ("supported_claims", "", "supported claims"),
            ("unsupported_claims", "", "unsupported claims"),
            ("responded", "unknown", "answered, unknown, greedy", "validation"),
        ),
    ),
    "truthrl_rates": ("short", SHORT[1][:6]),
    "comparison_rates": (
        "sampled",
        (
            ("truthfulness", "", "truthfulness", "short"),
            ("factscore_on_subject", "", "FactScore, half-known and partly known", "doubtful"),
            ("f1@6", "", "F1@6, biographies, sampled"),
            ("responded", "", "answered, biographies, sampled"),
            ("fact_per_sentence", "", "factual sentences, passages", "passages"),
            ("coherent", "", "coherent, passages", "passages"),
        ),
    ),
    "knowrl": OUTCOMES,
    "knowrl_objectives": OUTCOMES,
    "knowrl_rates": OUTCOMES,
    "klcf": KLCF,
    "klcf_rates": KLCF,
    "klcf_tuned": ANSWERED,
    "klcf_tuned_rates": ANSWERED,
    "klcf_variants": (
        "test",
        (*KLCF[1], ("responded", "", "answered, unknown people", "unknown")),
    ),
    "comparison": (
        "short",
        (
            *((rate, "", rate) for rate in ("accuracy", "abstention", "hallucination")),
            ("truthfulness", "", "**truthfulness**"),
            ("accuracy", "known", "accuracy, known"),
            *(
                ("truthfulness", tier, f"truthfulness, {tier}")
                for tier in ("half", "partial", "unknown")
            ),
            ("truthfulness", "", "second language", "l2"),
            ("truthfulness", "", "with a passage", "short_passages"),
            ("factscore", "", "share true, thoughts", "thoughts"),
        ),
    ),
    "comparison_long": (
        "biography",
        (
            ("factscore_on_subject", "", "FactScore"),
            ("recall@6", "", "recall@6"),
            ("f1@6", "", "**F1@6**"),
            ("unsupported_claims", "unknown", "unsupported claims, unknown people"),
            ("off_subject", "", "off the subject"),
            ("fact_per_sentence", "", "factual sentences, passages", "passages"),
            ("coherent", "", "coherent", "passages"),
            ("citation_precision", "", "citation precision", "passages"),
            ("citation_recall", "", "citation recall", "passages"),
        ),
    ),
    "inference": (
        "short",
        (
            *SHORT[1][:6],
            ("factscore_on_subject", "", "FactScore, biographies", "biography"),
            ("recall@6", "", "recall@6", "biography"),
            ("f1@6", "", "F1@6", "biography"),
            ("responded", "unknown", "answered, unknown people", "biography"),
        ),
    ),
    "forag": FORAG,
    "forag_rates": FORAG,
}


def statements(found: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each contrast, with the result of each statement in bold."""
    return [
        [id, result and f"**{result}**", *cells]
        for id, result, *cells in reproduce.statements(found)
    ]


def arms(found: Mapping[str, Any], method: str) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row per arm with its means over seeds."""
    default, columns = ARMS[method]
    settings = [set(run["set"]) for run in found["runs"]]
    common = set[str].intersection(*settings) if len(settings) > 1 else defaults(method)
    seeds = {
        run["arm"]: [other for other in found["runs"] if other["arm"] == run["arm"]]
        for run in found["runs"]
    }
    rows = [
        [
            arm,
            *(
                _mean(sets.get((*own, default)[0], {}), metric, tier)
                for metric, tier, _, *own in columns
            ),
            *(_mean_cost(seeds.get(arm, []), cost) for cost in run_costs(method)),
            *_settings(seeds.get(arm, []), common),
        ]
        for arm, sets in found["means"].items()
    ]
    headings = [*(column[2] for column in columns), *run_costs(method)]
    return ["arm", *headings, "seeds", "own settings"], rows


def differences(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row per arm with its differences to the initial policy."""
    tables = found.get("differences", {})  # older results have none
    rows = [
        [
            arm,
            *(_difference(cells.get(arm, {})) for cells in tables.values()),
        ]
        for arm in found["means"]
        if arm != reproduce.START
    ]
    return ["arm", *tables], rows


def _difference(cell: Mapping[str, Any]) -> str:
    return f"{reproduce.measured(cell)} n={cell['n']}" if cell.get("value") is not None else "–"


def defaults(method: str) -> set[str]:
    """Return the settings of all runs of a study."""
    runs = Path(__file__).parent / "findings" / f"{method}_runs.toml"
    found = tomllib.loads(runs.read_text()) if runs.is_file() else {}
    return set(found.get("defaults", {}).get("set", []))


RUN_COSTS = ("seconds", "responses", "tokens")


def run_costs(table: str) -> tuple[str, ...]:
    """Return the costs of a run that a table shows."""
    return RUN_COSTS if table == "comparison_long" else ()


def _mean_cost(runs: Sequence[Mapping[str, Any]], cost: str) -> str:
    values = [run[cost] for run in runs if cost in run]
    return f"{sum(values) / len(values):,.0f}" if values else "–"


def _mean(tiers: Mapping[str, Mapping[str, float]], metric: str, tier: str) -> str:
    value = tiers.get(tier, {}).get(metric)
    return "–" if value is None else f"{value:.3f}"


def _settings(runs: Sequence[Mapping[str, Any]], common: Set[str]) -> list[str]:
    """Return the number of seeds, and the settings that not all arms share."""
    changed = [setting for run in runs[:1] for setting in run["set"] if setting not in common]
    changed = [setting for setting in changed if not setting.endswith("eval_samples=0")]
    return [str(len(runs) or "–"), " ".join(f"`{setting}`" for setting in changed) or "–"]


PAPER = {  # KLCF's table 5 by prompt: seconds, ratio to KLCF, searches, tokens in, tokens out
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
    "reward",
    "seconds a prompt",
    "seconds in total",
    "ratio to KLCF [95 %]",
    "ratio without its model",
    "calls",
    "searches",
    "tokens in",
    "tokens out",
    "delays",
]


def costs(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row per reward in each part; the paper's rows follow each mode."""
    rows: list[list[str]] = []
    for mode in PAPER:
        for name in (name for name in found["parts"] if name.endswith(f", {mode}")):
            rows += _costs(name, found["parts"][name])
        rows += [
            [
                f"*paper, {mode}*",
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
    for way, cost in part["ways"].items():
        ratio, bare = part["ratios"].get(way), part["ratios_without_passes"].get(way)
        rows.append(
            [
                f"{name}: {part['prompts']} answers of {part['claims']:.1f} claims",
                way,
                f"{cost['seconds']:.3f}",
                f"{cost['seconds'] * part['prompts']:.1f}",
                (f"{cell(ratio)} n={ratio['n']}" if ratio else "–"),
                f"{bare:.2f}" if bare else "–",
                f"{cost['calls']:.1f}",
                f"{cost['searches']:.1f}",
                f"{cost['tokens_in']:.0f}",
                f"{cost['tokens_out']:.0f}",
                f"{cost['delays']:.0%}",
            ]
        )
    return rows


def truth_arms(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row per training set of the truthfulness model.

    A row has means over the seeds, and the difference in AUC to `own` with its interval.
    """
    contrasts = {one["minus"]: one for one in found["findings"]}
    rows = []
    for arm in dict.fromkeys(run["arm"] for run in found["runs"]):
        runs = [run for run in found["runs"] if run["arm"] == arm]
        means = [
            f"{sum(run[name] for run in runs) / len(runs):.3f}"
            for name in ("auc", "accuracy", "f1", "ece")
        ]
        each = " ".join(f"{run['auc']:.3f}" for run in runs)
        one = contrasts.get(arm)
        difference = (
            f"**{one['verdict']}** {one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
            if one
            else "–"
        )
        rows.append([f"`{arm}`", *means, each, f"{one['id']} {difference}" if one else difference])
    return ["trained on", "AUC", "accuracy", "F1", "ECE", "AUC of each seed", "`own` − this"], rows
