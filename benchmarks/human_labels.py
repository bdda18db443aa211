"""The whole local pipeline against people: claims, verdicts, places of errors, answers, abstention, calibration, speed.

    python benchmarks/human_labels.py --slices FOLDER --results benchmarks/results/human_labels.json

FOLDER holds the data sets in their authors' files: factscore_human, wice, factcheck_gpt, fool_me_twice, fever_symmetric, begin,
qa_feedback, halueval, nq_open, selfaware, refchecker, and nli_dev.jsonl.gz ({premise, claim, label, source}) for the one
threshold that is tuned, the word overlap's. Nothing is tuned on the sets themselves. Figures are of parts of the sets, at most
500 rows each; they are no official scores.

What each part measures is said in its module under `human/`. 95 % intervals: bootstrap over groups of rows that share a claim,
a text or a question; Wilson's for the plain shares of the answer and abstention parts. Verdicts are kept under --cache, so a
second run is quick; speed is measured anew each time, on one thread, in a process of its own.

Three things cannot be tested offline. FActScore's people judged against Wikipedia and RefChecker's against the contexts of its
questions: neither text is in these files, so their labels can test no verdict. SelfAware has questions, not responses. HaluEval
gives no evidence, so its errors are looked for with what the query says as the only evidence.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.human import answers, claims, spans, stats, verdicts  # noqa: E402
from benchmarks.human.cache import Remembered, remembered  # noqa: E402

UNTESTED = {
    "factscore_human": "its people judged against Wikipedia, whose text is not in the file: claims are tested, verdicts cannot be",
    "refchecker": "its people judged against references that are not in the files: its labels can test no verdict here",
    "selfaware": "it has questions and gold answers, no responses: only that neither is taken for an abstention",
    "halueval": "it has no evidence: errors are looked for with the user's query as the only evidence",
}
SPEED_ROWS = 200  # claims of each kind
REPEATS = 3


def measure(folder: Path, verifier: Remembered, limit: int | None, seed: int) -> dict[str, Any]:
    """Every part that needs no clock."""
    from workbench.verifier import read_rows

    tuned = verdicts.tune(read_rows(folder / "nli_dev.jsonl.gz"))
    told: dict[str, Any] = {"claims": claims.measure(folder, limit, seed), "verdicts": {}, "errors": {}}
    supports: list[float] = []
    gold: list[bool] = []
    for name, data in verdicts.SETS.items():
        found, p, right = verdicts.measure(data.read(folder)[:limit], verifier, tuned, seed)
        told["verdicts"][name] = {"classes": data.classes, "clean": data.clean, **found}
        if name in CALIBRATED:
            supports, gold = supports + p, gold + right
        print(name, json.dumps(found["balanced_accuracy"]), file=sys.stderr)
    for name, read in spans.SETS.items():
        told["errors"][name] = spans.measure(read(folder)[:limit], verifier, seed)
        print(name, json.dumps(told["errors"][name]["claims"]["f1"]), file=sys.stderr)
    told["matching"] = answers.measure_matching(answers.efficientqa(folder)[:limit], seed)
    told["abstention"] = answers.measure_abstention(folder, limit)
    told["calibration"] = {"sets": list(CALIBRATED), **verdicts.pooled(supports, gold)}
    return told


# Each claim once, and no claim that the verifier was trained on.
CALIBRATED = (
    "WiCE, oracle chunk", "Fool Me Twice, gold evidence", "FEVER-Symmetric", "BEGIN, Wizard of Wikipedia", "BEGIN, CMU-DoG"
)  # fmt: skip


def speed(folder: Path, path: Path | None) -> dict[str, Any]:
    """Claims per second and peak memory on one thread: short pairs, and answers against all their passages."""
    from workbench.extract import rules
    from workbench.threads import use_threads
    from workbench.types import Passage
    from workbench.verifier import load_verifier

    marked = spans.qa_feedback(folder)
    began = time.perf_counter()
    found = rules()([one.response for one in marked])
    extraction = time.perf_counter() - began
    long: list[tuple[str, Any]] = [
        (claim.text, one.response.question.passages) for one, made in zip(marked, found, strict=True) for claim in made.claims
    ]
    short: list[tuple[str, Any]] = [(pair.claim, [Passage("", "", str(pair.passages[0]))]) for pair in
                                    verdicts.SETS["BEGIN, Wizard of Wikipedia"].read(folder)]  # fmt: skip
    verifier = load_verifier(path)
    told: dict[str, Any] = {"threads": 1, "load": round(os.getloadavg()[0], 1), "cpu_count": os.cpu_count(),
                            "extraction": {"claims": sum(len(made.claims) for made in found), "seconds": round(extraction, 3)}}  # fmt: skip
    with use_threads(1):
        for name, work in (("short_pairs", short[:SPEED_ROWS]), ("three_passages", long[:SPEED_ROWS])):
            times = []
            for _ in range(REPEATS):
                began, cpu = time.perf_counter(), time.process_time()
                checks = verifier.check_all(work)
                times.append((round(time.perf_counter() - began, 2), round(time.process_time() - cpu, 2)))
            seconds, cpu = min(one[0] for one in times), min(one[1] for one in times)
            told[name] = {"claims": len(work), "windows": sum(check.windows for check in checks), "seconds": times,
                          "claims_per_second": round(len(work) / seconds, 1),
                          "claims_per_cpu_second": round(len(work) / cpu, 1)}  # fmt: skip
    return {**told, "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}


def cell(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "–"
    interval = "" if rate["low"] is None else f" [{rate['low']:.2f}, {rate['high']:.2f}]"
    return f"{rate['value']:.2f}{interval}"


def table(results: Mapping[str, Any]) -> str:
    """The results as one Markdown table, for README.md and the notebook."""
    rows = [*_claim_rows(results["claims"]), *_verdict_rows(results["verdicts"]), *_error_rows(results["errors"]),
            *_answer_rows(results["matching"]), *_abstention_rows(results["abstention"])]  # fmt: skip
    head = ("people's labels", "n", "measure", "here", "simple rival")
    quick, calm = results["speed"], results["calibration"]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + (
        f"\n\np(support) has an expected calibration error of {calm['ece']:.2f} over {calm['n']} claims of five of these sets. On one "
        f"thread: {quick['short_pairs']['claims_per_second']:.0f} claims a second with\nshort evidence, "
        f"{quick['three_passages']['claims_per_second']:.0f} with three passages each; peak memory {quick['peak_rss_mb']} MB. "
        "† most of these claims, though not their evidence, were among the training pairs."
    )


Line = tuple[str, int, str, str, str]


def _claim_rows(found: Mapping[str, Any]) -> list[Line]:
    return [
        ("claims of biographies (FActScore)", found["human_facts"], f"{what}, {at}", cell(found["rules"][at][what]),
         f"sentences {cell(found['sentences'][at][what])}")
        for at in (f"F1 ≥ {threshold}" for threshold in claims.THRESHOLDS)
        for what in ("recall", "precision")
    ]  # fmt: skip


def _verdict_rows(found: Mapping[str, Any]) -> list[Line]:
    rows: list[Line] = []
    for name, one in found.items():
        rival = max((one["overlap"][at]["balanced_accuracy"] for at in ("fixed", "tuned_on_nli_dev")), key=lambda r: r["value"])
        title = name if one["clean"] else f"{name} †"
        rows.append(
            (title, one["n"], "supported or not, balanced accuracy", cell(one["balanced_accuracy"]), f"overlap {cell(rival)}")
        )
        rows.append((title, one["n"], "AUROC of p(support)", cell(one["auroc"]), f"overlap {cell(one['overlap']['auroc'])}"))
    return rows


def _error_rows(found: Mapping[str, Any]) -> list[Line]:
    return [
        (name, one["n"], "characters in error, F1", cell(one["claims"]["f1"]),
         f"everything {cell(one['everything']['f1'])}; same verdicts by sentence {cell(one['sentences']['f1'])}")
        for name, one in found.items()
    ]  # fmt: skip


def _answer_rows(found: Mapping[str, Any]) -> list[Line]:
    sides = (("definitely correct", "accepts what is definitely correct"), ("possibly correct", "accepts what is possibly correct"),
             ("definitely incorrect", "accepts what is definitely incorrect"))  # fmt: skip
    return [
        ("answers (EfficientQA)", found["workbench"]["accepted"][said]["n"], text, cell(found["workbench"]["accepted"][said]),
         f"exact match {cell(found['squad_em']['accepted'][said])}; contains {cell(found['contains']['accepted'][said])}")
        for said, text in sides
    ]  # fmt: skip


def _abstention_rows(found: Mapping[str, Any]) -> list[Line]:
    return [(f"abstention: {name}", one["n"], "taken for an abstention", cell(one), "never 0.00") for name, one in found.items()
            if "RefChecker" not in name]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=Path, default=os.environ.get("WORKBENCH_SLICES"), help="default: $WORKBENCH_SLICES")
    parser.add_argument("--verifier", type=Path, help="folder of a verifier; default: the one shipped")
    parser.add_argument("--limit", type=int, help="only the first so many rows of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=ROOT / "runs" / "human_labels")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--speed", action="store_true", help="measure only the speed, and print it")
    given = parser.parse_args()
    if not given.slices:
        parser.error("name the folder with the data sets: --slices FOLDER, or the variable WORKBENCH_SLICES")
    if given.speed:
        print(json.dumps(speed(given.slices, given.verifier)))
        return

    from workbench.recipes import versions
    from workbench.threads import use_threads

    own = ["--slices", str(given.slices), *(["--verifier", str(given.verifier)] if given.verifier else [])]
    clock = subprocess.run([sys.executable, __file__, "--speed", *own], stdout=subprocess.PIPE, text=True, check=True)
    verifier = remembered(given.verifier, given.cache)
    with use_threads(1):
        found = measure(given.slices, verifier, given.limit, given.seed)
    results = {
        "date": date.today().isoformat(), "seed": given.seed, "resamples": stats.RESAMPLES, "limit": given.limit,
        "command": "python benchmarks/human_labels.py --slices FOLDER --results benchmarks/results/human_labels.json",
        "versions": versions(), "machine": platform.machine(),
        "verifier": {"sha256": verifier.sha256, "settings": asdict(verifier.settings)},
        **found, "speed": json.loads(clock.stdout), "cannot_be_tested": UNTESTED,
    }  # fmt: skip
    print(table(results))
    if given.results:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
