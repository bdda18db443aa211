"""Compare the local pipeline with human labels.

    python benchmarks/human_labels.py --slices FOLDER --results benchmarks/results/human_labels.json

The parts are claims, verdicts, positions of errors, answers, abstention and calibration. The
modules under `human/` describe what they measure.

FOLDER holds the data sets in their authors' files: factscore_human, wice, factcheck_gpt,
fool_me_twice, fever_symmetric, begin, qa_feedback, halueval, nq_open, selfaware, refchecker.
nli_dev.jsonl.gz ({premise, claim, label, source}) tunes the only tuned threshold, that of the word
overlap.

The verifier's weights and thresholds are not tuned on these sets. Its rules about numbers and
names, and its pooling of windows, were chosen on one half of each (`verdicts_halves` separates the
halves). The rules for claims and for abstention were written while looking at factscore_human.
Figures are for parts of the sets, at most 663 rows each. They are not official scores.

95 % intervals: bootstrap over groups of rows that share a claim, a text or a question; Wilson's for
the plain shares of answers and abstention. Verdicts are stored in --cache, so a second run is
quick. Speed is measured each time, on one thread, in its own process. `--rules` measures only
claims, the order of systems, answers and abstention, in a minute. `--verdicts` measures only
verdicts on given evidence. Both keep the other results. `--card` measures the shipped verifier,
`data/verifier`, and writes its card.

Not testable offline:

- verdicts with the labels of FActScore and RefChecker. The annotators' evidence (Wikipedia, the
  contexts of the questions) is not in these files;
- the order of RefChecker's two systems by outcomes. Its files have no questions and no gold
  answers;
- abstention on SelfAware, which has no responses;
- errors in HaluEval with evidence. Its only evidence is the user's query.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.human import (  # noqa: E402
    altered,
    answers,
    claims,
    faithful,
    spans,
    stats,
    systems,
    verdicts,
)
from benchmarks.human.cache import Remembered, remembered  # noqa: E402
from benchmarks.human.robustness import robustness  # noqa: E402
from benchmarks.tables import cell, markdown  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.verifier import Row, evaluate_verifier, load_verifier, read_rows  # noqa: E402
from workbench.verifier.card import SPEED_ROWS, rounded  # noqa: E402
from workbench.verifier.verifier import SHIPPED  # noqa: E402

UNTESTED = {
    "factscore_human": (
        "its people judged against Wikipedia, whose text is not in the file: only claims are tested"
    ),
    "refchecker": (
        "its people judged against references that are not in the files: its labels can test no"
        " verdict; nor are the questions and gold answers of its systems in them, so that their"
        " order by outcomes cannot be tested, only that by claims"
    ),
    "selfaware": (
        "it has questions and gold answers, no responses: only that neither is taken for an"
        " abstention"
    ),
    "halueval": (
        "it has no evidence: errors are looked for with the user's query as the only evidence"
    ),
}
CALIBRATED = (  # each claim occurs once and is not in the verifier's training data
    "WiCE, oracle chunk",
    "Fool Me Twice, gold evidence",
    "FEVER-Symmetric",
    "BEGIN, Wizard of Wikipedia",
    "BEGIN, CMU-DoG",
)


def measure(folder: Path, verifier: Remembered, limit: int | None, seed: int) -> dict[str, Any]:
    """Measure every part except speed."""
    output = by_verdicts(folder, verifier, limit, seed)
    output["errors"] = {}
    for name, read in spans.SETS.items():
        output["errors"][name] = spans.measure(read(folder)[:limit], verifier, seed)
        print(name, json.dumps(output["errors"][name]["claims"]["f1"]), file=sys.stderr)
    return output | by_rules(folder, limit, seed)


def by_verdicts(folder: Path, verifier: Remembered, limit: int | None, seed: int) -> dict[str, Any]:
    """Measure verdicts on claims with given evidence."""
    rows = read_rows(folder / "nli_dev.jsonl.gz")
    tuned = verdicts.tune(rows)
    dev, *_ = verdicts.measure(
        verdicts.pairs(rows, verdicts.by_premise)[:limit], verifier, tuned, seed
    )
    output: dict[str, Any] = {"dev": dev, "instructions": robustness(verifier)}
    output["verdicts"] = {}
    supports: list[float] = []
    gold: list[bool] = []
    for name, data in verdicts.SETS.items():
        found, p, right = verdicts.measure(data.read(folder)[:limit], verifier, tuned, seed)
        output["verdicts"][name] = {"classes": data.classes, "clean": data.clean, **found}
        if name in CALIBRATED:
            supports, gold = supports + p, gold + right
        print(name, json.dumps(found["balanced_accuracy"]), file=sys.stderr)
    output |= verdict_halves(folder, verifier, limit)
    output["calibration"] = {"sets": list(CALIBRATED), **verdicts.pooled(supports, gold)}
    return output


def verdict_halves(folder: Path, verifier: Remembered, limit: int | None) -> dict[str, Any]:
    """Measure the half on which rules and pooling were chosen, and the other without its claims."""
    given = verdicts.halves(
        {name: data.read(folder) for name, data in verdicts.SETS.items()}, faithful.half, limit
    )
    ways = altered.ways(verifier)
    return {
        "verdicts_halves": {
            way: {name: verdicts.measure_halves(some, one) for name, some in given.items()}
            for way, one in ways.items()
        },
        "agreement": {way: verdicts.agreement(given, one) for way, one in ways.items()},
        "altered": altered.measure(given, verifier),
    }


def by_rules(folder: Path, limit: int | None, seed: int) -> dict[str, Any]:
    """Measure the parts without a verifier: claims, order of systems, answers and abstention."""
    return {
        "claims": claims.measure(folder, limit, seed),
        "faithful": faithful.measure(folder, seed),
        "matching": answers.measure_matching(answers.efficientqa(folder)[:limit], seed),
        "matching_halves": answers.measure_halves(folder),
        "abstention": answers.measure_abstention(folder, limit),
        "systems": systems.measure(folder, seed),
        "cannot_be_tested": UNTESTED,
    }


def measure_card(rows: Sequence[Row]) -> None:
    """Measure the shipped verifier and write its figures into its `card.json`."""
    from workbench.util.threads import use_threads

    path = SHIPPED / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    verifier = load_verifier()
    with use_threads(1):
        card["dev"] = evaluate_verifier(verifier, rows)
        speed = evaluate_verifier(verifier, rows[:SPEED_ROWS])["claims_per_second"]
    card["one_thread"] = {"claims_per_second": speed, "rows": min(SPEED_ROWS, len(rows))}
    write_json(path, rounded(card))


def table(results: Mapping[str, Any]) -> str:
    """Return the results as a Markdown table with notes, for docs/measured.md and the notebook."""
    rows = [
        *_claim_rows(results["claims"]),
        *_faithful_rows(results.get("faithful", {})),
        _dev_row(results["dev"]),
        *_verdict_rows(results["verdicts"]),
        *_error_rows(results["errors"]),
        *_answer_rows(results["matching"]),
        *_abstention_rows(results["abstention"]),
        *_system_rows(results.get("systems", {})),
    ]
    head = ["human labels", "n", "measure", "here", "simple baselines"]
    return markdown(head, [list(map(str, row)) for row in rows]) + "\n\n" + _notes(results)


def _notes(results: Mapping[str, Any]) -> str:
    stale = results.get("rules_measured", "") > results.get("date", "")
    old = (
        f"\n- Characters in error were measured on {results['date']}, with that day's rules for"
        " claims."
        if stale
        else ""
    )
    calm, moved = results["calibration"], results["instructions"]
    changes = ("instructions inside its sentence", "instructions behind and before", "paraphrases")
    inside, around, other = (moved[name]["mean_change"] for name in changes)
    return (
        "- *Overlap*: the share of the claim's words in the evidence, at the better of two"
        " thresholds.\n- † Most of these claims, with other evidence, were among the training"
        " pairs.\n- ‡ People judged only answers without an exact match.\n- § Seen while the rules"
        " were written.\n- ¶ The verifier's dev rows: temperature and thresholds were chosen on"
        " them.\n- ‖ *Tuned on*: responses that were used to fix the rules. *Held out*: responses"
        " that were first read after the rules\n  were written, with the rules of that time."
        " *Chat, again* is measured with the current rules, *chat* and\n  *encyclopaedia* with the"
        " rules before the last change.\n- Errors are located (characters, tokens) no better than"
        " by marking whole sentences (F1): do not rely on the\n  marked words. Only on QA-Feedback"
        " does p(support) rank errors well (AUROC).\n- p(support) has an expected calibration error"
        f" of {calm['ece']:.2f} over {calm['n']} claims of five of these sets.\n- p(support)"
        f" changes on average by {inside:.3f} with an instruction inside the claim's sentence, by"
        f" {around:.3f} with one in its\n  own sentence, and by {other:.3f} with a paraphrase"
        f" ({moved['claims']} claims)." + old
    )


Line = tuple[str, int, str, str, str]


def _claim_rows(found: Mapping[str, Any]) -> list[Line]:
    rows: list[Line] = []
    for at in (f"F1 ≥ {threshold}" for threshold in claims.THRESHOLDS):
        ours, whole = (
            f"{cell(found[name][at]['recall'])} · {cell(found[name][at]['precision'])}"
            for name in ("rules", "sentences")
        )
        name, n = "claims of biographies (FActScore) §", found["human_facts"]
        rows.append((name, n, f"recall · precision, words {at}", ours, f"sentences {whole}"))
    return rows


def _faithful_rows(found: Mapping[str, Any]) -> list[Line]:
    """Return wrong claims at the first reading of a response, by the rules of that time and
    earlier.
    """
    rows: list[Line] = []
    for name, one in found.items():
        title, measure = (
            f"claims that their text does not state: {name.replace('kept aside', 'held out')} ‖",
            "share of claims, read by hand",
        )
        rows.append(
            (
                title,
                one["first"]["claims"],
                measure,
                cell(one["first"]),
                f"rules before {cell(one['before'])}",
            )
        )
    return rows


def _dev_row(found: Mapping[str, Any]) -> Line:
    unknown = {"accuracy": {"value": None}}  # few rows may lack one of the three labels
    accuracy, most = (
        found.get("three_way", unknown)["accuracy"],
        max(found["labels"].values()) / found["n"],
    )
    title = "supported, contradicted or neutral: pairs like the training data ¶"
    return (title, found["n"], "accuracy", cell(accuracy), f"most frequent label {most:.2f}")


def _verdict_rows(found: Mapping[str, Any]) -> list[Line]:
    rows: list[Line] = []
    for name, one in found.items():
        lexical, title = one["overlap"], f"supported: {name}" + ("" if one["clean"] else " †")
        thresholds = (lexical[at]["balanced_accuracy"] for at in ("fixed", "tuned_on_nli_dev"))
        rival = max(thresholds, key=lambda rate: rate["value"])
        ours = f"{cell(one['balanced_accuracy'])} · {cell(one['auroc'])}"
        rows.append(
            (
                title,
                one["n"],
                "balanced accuracy · AUROC",
                ours,
                f"overlap {cell(rival)} · {cell(lexical['auroc'])}",
            )
        )
    return rows


def _error_rows(found: Mapping[str, Any]) -> list[Line]:
    rows: list[Line] = []
    for name, one in found.items():
        rivals = {
            "everything": "everything",
            "overlap": "word overlap",
            "whole sentences": "sentences",
        }
        output = "; ".join(f"{title} {cell(one[key]['f1'])}" for title, key in rivals.items())
        both = (cell(one[key]["f1"]) for key in ("claims", "claims, contradicted"))
        ours = " · ".join([*both, cell(one["auroc"])])
        what = "F1 of unsupported · of contradicted claims · AUROC"
        rows.append((f"characters in error: {name}", one["n"], what, ours, f"F1: {output}"))
    return rows


def _answer_rows(found: Mapping[str, Any]) -> list[Line]:
    rows: list[Line] = []
    for judgement in answers.JUDGEMENTS:
        ours, em, inside = (
            found[name]["accepted"][judgement] for name in ("workbench", "squad_em", "contains")
        )
        rivals = f"exact match {cell(em)} ‡; contains {cell(inside)}"
        rows.append(
            ("answers (EfficientQA)", ours["n"], f"accepted, of {judgement}", cell(ours), rivals)
        )
    return rows


def _abstention_rows(found: Mapping[str, Any]) -> list[Line]:
    """Return the rows of abstention, without RefChecker's empty lists, which a model made."""
    kept = {name: one for name, one in found.items() if not name.startswith("RefChecker")}
    titles = {name: f"abstention: {name}" + (" §" if "FActScore" in name else "") for name in kept}
    return [
        (titles[name], one["n"], "classified as abstention", cell(one), "–")
        for name, one in kept.items()
    ]


def _system_rows(found: Mapping[str, Any]) -> list[Line]:
    """Return a row per set of systems: mean supported share, by our claims and by human labels."""
    sets = {name: one["systems"] for name, one in found.items() if "systems" in one}
    measure = "supported: our claims, people's labels"

    def shares(systems: Mapping[str, Any], whose: str) -> str:
        return " · ".join(f"{name} {one[whose]['value']:.2f}" for name, one in systems.items())

    return [
        (
            f"order of systems: {name.replace('__', ', ').replace('_', ' ')}",
            sum(one["people"]["n"] for one in systems.values()),
            measure,
            shares(systems, "ours"),
            f"people's claims: {shares(systems, 'people')}",
        )
        for name, systems in sets.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--slices",
        type=Path,
        default=os.environ.get("WORKBENCH_SLICES"),
        help="default: $WORKBENCH_SLICES",
    )
    parser.add_argument(
        "--verifier", type=Path, help="folder of a verifier; default: the shipped one"
    )
    parser.add_argument("--limit", type=int, help="use at most this many rows of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=ROOT / "runs" / "human_labels")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--speed", action="store_true", help="measure only the speed, and print it")
    parser.add_argument(
        "--rules",
        action="store_true",
        help="measure only the parts without a verifier; keep the rest of --results",
    )
    parser.add_argument(
        "--verdicts",
        action="store_true",
        help="measure only verdicts on given evidence; keep the rest of --results",
    )
    parser.add_argument(
        "--card",
        action="store_true",
        help="measure the shipped verifier and rewrite its card",
    )
    given = parser.parse_args()
    if not given.slices:
        parser.error(
            "name the folder with the data sets: --slices FOLDER, or the variable WORKBENCH_SLICES"
        )
    if (given.rules or given.verdicts) and not given.results:
        parser.error("--rules and --verdicts keep the other results of a file: add --results FILE")
    if given.speed:
        from benchmarks.human.speed import speed

        print(json.dumps(speed(given.slices, given.verifier)))
        return

    from workbench.runs.folder import versions
    from workbench.util.threads import use_threads

    if given.card:
        measure_card(read_rows(given.slices / "nli_dev.jsonl.gz"))
        return
    today, results = date.today().isoformat(), {}
    if given.rules or given.verdicts:
        results = json.loads(given.results.read_text(encoding="utf-8"))
    with use_threads(1):
        if given.rules:
            found = by_rules(given.slices, given.limit, given.seed)
            results |= {**found, "rules_measured": today}
        elif given.verdicts:
            verifier = remembered(given.verifier, given.cache)
            found = by_verdicts(given.slices, verifier, given.limit, given.seed)
            results |= {**found, "verdicts_measured": today}
        else:
            verifier = remembered(given.verifier, given.cache)
            results = {
                "date": today,
                "seed": given.seed,
                "resamples": stats.RESAMPLES,
                "limit": given.limit,
                "command": (
                    "python benchmarks/human_labels.py --slices FOLDER --results"
                    " benchmarks/results/human_labels.json"
                ),
                "versions": versions(),
                "machine": platform.machine(),
                "verifier": {"sha256": verifier.sha256, "settings": asdict(verifier.settings)},
                **measure(given.slices, verifier, given.limit, given.seed),
            }
    if given.results:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        write_json(given.results, results)
    print(table(results))


if __name__ == "__main__":
    main()
