"""Write results as tables in Markdown: helpers, and the tables on language models as judges."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

JUDGES, LEAST_CLAIMS = ("local", "model", "both"), 5


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows]
    )


def cell(rate: Mapping[str, Any], digits: str = ".2f") -> str:
    """Return a value with its interval, if there is one, in a format; a dash without a value."""
    if rate["value"] is None:
        return "–"
    bounds = [f"{rate[key]:{digits}}" for key in ("low", "high") if rate[key] is not None]
    return f"{rate['value']:{digits}}" + (f" [{', '.join(bounds)}]" if bounds else "")


def share(rate: dict) -> str:
    return cell(rate, ".0%")


def real_judge(found: dict) -> str:
    """Return the verifier, a small language model and both on the same claims, without small
    samples.
    """
    columns = ["model", "claims", "n", "verifier", "model alone", "both"]
    called, accurate, ordered, costs = [], [], [], []
    for name, one in found["models"].items():
        sizes = Counter(some["altered"]["local"]["n"] for some in one["altered"].values())
        for kind, some in one["altered"].items():
            if kind == "all kinds" and sizes[some["altered"]["local"]["n"]] > 1:
                continue  # a single kind was measured
            for version in ("altered", "original"):
                judges = some[version]
                if (n := judges["local"]["n"]) >= LEAST_CLAIMS:
                    shares = [share(judges[judge]) for judge in JUDGES]
                    called.append([name, f"{kind}: {version}", str(n), *shares])
        pooled = {"data sets": one["all_sets"]}
        pooled["altered, originals"] = one["altered"]["all kinds"]["separated"]
        for group, some in pooled.items():
            row = [name, group, str(some["n"])]
            if some["n"] >= 2 * LEAST_CLAIMS and all(judge in some for judge in JUDGES):
                accurate.append([*row, *(cell(some[one]["balanced_accuracy"]) for one in JUDGES)])
                if "auroc" in some["model"]:
                    ordered.append([*row, *(cell(some[one]["auroc"]) for one in JUDGES[:2])])
        clock = one["cpu_seconds_per_claim"]
        costs.append(
            f"- {name}: {one['asked']} claims, median {clock['median']:.1f} CPU seconds a claim;"
            f" {share(one['in_declared_form'])} in the declared form."
        )
    tables = [
        "Share called *correct*:\n\n" + markdown(columns, called),
        "Balanced accuracy of *correct*:\n\n" + markdown(columns, accurate),
        "AUROC of `p`:\n\n" + markdown(columns[:-1], ordered),
    ]
    return "\n\n".join([*tables, "\n".join(costs)])


def judge_prompts(found: dict) -> str:
    """Return form and time of a small language model's prompts, and its agreement with others."""
    forms, agreed = [], []
    for name, one in found.items():
        for task, some in one["tasks"].items():
            failed = ", ".join(f"{n} {kind}" for kind, n in some["failures"].items())
            form, n = some["in_form_at_once"], str(some["in_form_at_once"]["n"])
            forms.append([name, task, n, share(form), failed or "0", f"{some['seconds']:.1f}"])
        for other, some in one["agreement"]["claims"].items():
            sides = [f"{both} of {n}" for n, both in (some["supported"], some["others"])]
            agreed.append([name, f"claims, {other}", str(some["n"]), share(some), *sides])
        outcomes = one["agreement"]["outcomes"]
        agreed.append([name, "outcomes, the rules", str(outcomes["n"]), share(outcomes), "", ""])
    columns = ["model", "prompt", "n", "first reply in form", "failed after retries", "seconds"]
    sides = ["model says *correct* where the other does", "where the other does not"]
    compared = ["model", "compared with", "n", "equal", *sides]
    return f"{markdown(columns, forms)}\n\n{markdown(compared, agreed)}"


def judge_orders(found: dict) -> str:
    """Return the arms' rates by several judges of outcomes, and how the judges' orders compare."""
    judges = found["judges"]
    arms = list(next(iter(judges.values()))["arms"])
    rates = [
        markdown(
            [f"{rate} by", *judges],
            [[arm, *(_rate(one["arms"][arm][rate]) for one in judges.values())] for arm in arms],
        )
        for rate in ("truthfulness", "hallucination")
    ]
    rows = []
    for name, one in judges.items():
        tau = cell(one["tau"]) if one.get("tau", {}).get("low") is not None else "–"
        labels = [
            ", ".join(str(counts.get(label, 0)) for label in ("correct", "uncertain", "incorrect"))
            for counts in one.get("labels", {}).values()
        ]
        held = [f"**{result}**" for result in one["holds"].values()]
        cost = [str(one[key]) if key in one else "–" for key in ("prompts", "failed", "seconds")]
        agreed = share(one["agreement"]) if "agreement" in one else "–"
        dashes = ["–"] * (2 - len(labels))
        held += ["–"] * (2 - len(held))
        rows.append([name, _order(one), held[0], tau, held[1], agreed, *labels, *dashes, *cost])
    columns = [
        *("judge", "order", "ternary first", "tau [95 %]", "tau ≥ .6", "equal labels"),
        *("labels of right answers", "of wrong answers", "prompts", "failed", "seconds"),
    ]
    statements = "\n".join(
        f"- **{one['result']}**: {one['statement']}" for one in found["expected"].values()
    )
    about = f"{found['date']}, {found['questions']} questions, {found['answers']} answers."
    return "\n\n".join([about, statements, *rates, markdown(columns, rows)])


def _order(judge: dict) -> str:
    """Return the arms by decreasing truthfulness, with ties as equal."""
    text, last = "", None
    for arm in judge["order"]:
        value = judge["arms"][arm]["truthfulness"]["value"]
        text += f"{' = ' if value == last else ' > ' if text else ''}{arm}"
        last = value
    return text


def _rate(rate: dict) -> str:
    return "–" if rate["value"] is None else cell(rate)


WINS = {
    "altered": "true biographies − half of the facts altered",
    "half": "true biographies − their first half",
    "trained": "trained policy − initial policy",
}


def win_rate(found: dict) -> str:
    """Return win rates by a small language model, and those of its controls."""
    rows = [
        [
            name,
            WINS[pair],
            str(one["pairs"]["n"]),
            share(one["win_rate"]),
            f"{one['pairs']['won']}, {one['pairs']['tied']}, {one['pairs']['lost']}",
            share(one["by_p"]) if one["by_p"]["n"] else "–",
            share(one["exact"]) if "exact" in one else "100%",
        ]
        for name, pairs in found.items()
        for pair, one in pairs.items()
    ]
    columns = ["judge", "pairs", "n", "win rate", "won, tied, lost", "win rate by `p`", "exact"]
    return markdown(columns, rows)
