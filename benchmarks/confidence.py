"""TruthRL's answers by confidence, and by the majority of k samples (majority@k and figure 5).

    python benchmarks/confidence.py --results benchmarks/results/truthrl_confidence.json

The initial policy and three arms of TruthRL's study answer each test question 16 times. Missing
runs are trained first. The statements are in `benchmarks/findings/truthrl_confidence.toml`. The
samples are stored in the folder `probes` of `--out`, which also has the runs, and not repeated.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

ROOT_FOLDER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT_FOLDER))

from benchmarks.findings import (  # type: ignore[attr-defined]  # noqa: E402  # a folder has this name
    FILES,
    show,
    start_folder,
)
from benchmarks.reproduce import START, Answered, check, load_findings  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.experiments.probe import probe_policy  # noqa: E402
from workbench.experiments.queue import ROOT, queue_runs, train_queue  # noqa: E402
from workbench.metrics.boundary import Majority, Probed, confidence_bins  # noqa: E402
from workbench.metrics.rows import Row  # noqa: E402
from workbench.runs.folder import versions  # noqa: E402
from workbench.util.jsonl import iter_rows, write_json  # noqa: E402

ARMS = ("sft_gold", "binary", "ternary")
SAMPLES = 16
SURE = 0.5  # smallest confidence of a question of the set "sure"
WIDTH = 2  # bins of `confidence_bins` that are one row of the table


def probed(policy: str, folder: Path) -> tuple[dict[str, Any], list[Probed]]:
    """Return the report of a policy's probe on the test split, and its questions with samples."""
    report = probe_policy(policy, "test", k=SAMPLES, out=folder, threads=1)
    return report, [Probed.from_row(row) for row in iter_rows(folder / "probe.jsonl")]


def answers(rows: Sequence[Probed]) -> dict[str, list[Answered]]:
    """Return the majority answers by question set: "sure" or "unsure", as the samples agree."""
    sets: dict[str, list[Answered]] = {"sure": [], "unsure": []}
    for row in rows:
        if top := row.majority:
            answer = Row("probe", row.question_id, "no_claims", outcome=top.outcome)
            sets["sure" if top.confidence >= SURE else "unsure"].append(Answered(answer))
    return sets


def bins(tops: Sequence[Majority]) -> list[dict[str, Any]]:
    """Return the shares of outcomes by confidence, in bins of .2."""
    narrow = confidence_bins(tops)
    wide = []
    for first in range(0, len(narrow), WIDTH):
        pair = narrow[first : first + WIDTH]
        n = sum(one["n"] for one in pair)
        shares = {
            name: sum(one["n"] * one[name] for one in pair if one["n"]) / n if n else None
            for name in ("correct", "abstain", "wrong")
        }
        wide.append({"low": pair[0]["low"], "high": pair[-1]["high"], "n": n, **shares})
    return wide


def truthful(rates: Mapping[str, float]) -> float:
    """Return accuracy minus hallucination."""
    return rates["accuracy"] - rates["hallucination"]


def table(results: Mapping[str, Any]) -> str:
    """Return the majority's outcomes by number of samples, and the outcomes by confidence."""
    names = ("accuracy", "abstention", "hallucination")
    votes = [
        [arm, k, *(f"{value:.3f}" for value in (*map(rates.get, names), truthful(rates)))]
        for arm, by_k in results["majority"].items()
        for k, rates in by_k.items()
    ]
    by_confidence = [
        [arm, f"{one['low']:.1f} to {one['high']:.1f}", str(one["n"])]
        + [
            "–" if one[name] is None else f"{one[name]:.2f}"
            for name in ("correct", "abstain", "wrong")
        ]
        for arm, wide in results["bins"].items()
        for one in wide
    ]
    return f"{markdown(['arm', 'samples', *names, 'truthfulness'], votes)}\n\n" + markdown(
        ["arm", "confidence", "n", "correct", "abstains", "wrong"], by_confidence
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    queued = queue_runs(FILES / "truthrl_runs.toml", given.out)
    runs = [run for run in queued if run.entry.name in ARMS]
    if train_queue(runs, given.out)["status"] != "done" or any(run.summary is None for run in runs):
        raise SystemExit("not all runs are done: the same command goes on")
    policies = [(START, runs[0].identity["policy"], start_folder(runs[0], given.out).name)]
    policies += [(run.entry.name, str(run.folder), run.folder.name) for run in runs]
    found: dict[str, list[tuple[dict[str, Any], list[Probed]]]] = {}
    for arm, policy, name in policies:
        found.setdefault(arm, []).append(probed(policy, given.out / "probes" / name))
    sets = {
        arm: {name: [answers(rows)[name] for _, rows in seeds] for name in ("sure", "unsure")}
        for arm, seeds in found.items()
    }
    checked = check(load_findings(FILES / "truthrl_confidence.toml"), sets)
    show(checked)
    results = {
        "date": date.today().isoformat(),
        "versions": versions(),
        **{key: runs[0].identity[key] for key in ("world_hash", "policy_hash")},
        "findings": checked,
        "majority": {
            arm: {
                k: {
                    rate: mean(report["majority"][k][rate] for report, _ in seeds)
                    for rate in ("accuracy", "abstention", "hallucination")
                }
                for k in seeds[0][0]["majority"]
            }
            for arm, seeds in found.items()
        },
        "bins": {
            arm: bins([top for _, rows in seeds for row in rows if (top := row.majority)])
            for arm, seeds in found.items()
        },
        "runs": [{"arm": arm, "hash": name} for arm, _, name in policies],
    }
    print(table(results))
    if given.results:
        write_json(given.results, results)


if __name__ == "__main__":
    main()
