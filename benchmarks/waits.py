"""Measure what a user waits for, in this checkout and in an earlier one.

    git worktree add ../earlier 139f464c
    python benchmarks/waits.py --than ../earlier --slices FOLDER
    --results benchmarks/results/waits.json

The checkouts take turns, so that other load affects both: trust the ratios. Both run with this
Python and its packages. Parts that are not measured keep their results.

- `help`, `typo`: `workbench --help`, and a misspelt command
- `inspector`: from the start of `workbench inspect` to its first page
- `verifier`: one thread checks claims with a sentence as evidence, and claims with three long
  passages each; peak memory of this process (`human_labels.py --speed`)
- `demo`: `workbench demo`
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# (part, figure) -> what it is, and its unit
TITLES = {
    ("help", "seconds"): ("`workbench --help`", "s"),
    ("typo", "seconds"): ("a misspelt command", "s"),
    ("inspector", "seconds"): ("`workbench inspect`, to its first page", "s"),
    ("verifier", "short_pairs"): (
        "local verifier, a sentence as evidence",
        "claims per CPU second",
    ),
    ("verifier", "three_passages"): (
        "local verifier, three long passages",
        "claims per CPU second",
    ),
    ("verifier", "peak_mb"): ("the same: peak memory", "MB"),
    ("demo", "seconds"): ("`workbench demo`", "s"),
}
WORKBENCH = ("-m", "workbench.cli")


def python(checkout: Path, *words: str, **settings: Any) -> "subprocess.Popen[str]":
    """Start this Python in a checkout, with its packages and the checkout's library."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def command(checkout: Path, *words: str, code: int = 0) -> dict[str, float]:
    """Return the seconds of a command of the workbench, which must end with this exit code."""
    start = time.perf_counter()
    process = python(checkout, *WORKBENCH, *words)
    _, errors = process.communicate()
    assert process.returncode == code, errors
    return {"seconds": time.perf_counter() - start}


def demo(checkout: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as out:
        return command(checkout, "demo", "--out", out)


def inspector(checkout: Path) -> dict[str, float]:
    """Return the seconds until the inspector, opened without a run, has sent its page."""
    with tempfile.TemporaryDirectory() as runs:
        start = time.perf_counter()
        with python(checkout, *WORKBENCH, "inspect", "--no-browser", "--runs", runs) as process:
            address = None
            while address is None:
                assert process.stdout and process.poll() is None
                address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            try:
                with urllib.request.urlopen(address[0]) as page:
                    page.read()
                seconds = time.perf_counter() - start
            finally:
                process.kill()
    return {"seconds": seconds}


def verifier(checkout: Path, slices: Path) -> dict[str, float]:
    """Return claims per second of one thread, and the peak memory in MB."""
    words = ("benchmarks/human_labels.py", "--speed", "--slices", str(slices))
    output, errors = (process := python(checkout, *words)).communicate()
    assert process.returncode == 0, errors
    found = json.loads(output)
    return {
        **{
            name: found[name]["claims_per_cpu_second"] for name in ("short_pairs", "three_passages")
        },
        "peak_mb": found["peak_rss_mb"],
    }


def compared(found: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Return each figure's medians and ratio here / earlier: the median and range over rounds."""
    here, earlier = found.values()
    table = {}
    for name in here[0]:
        pairs = [(a[name], b[name]) for a, b in zip(here, earlier, strict=True)]
        ratios = [a / b for a, b in pairs]
        table[name] = {
            "here": round(median(a for a, _ in pairs), 2),
            "earlier": round(median(b for _, b in pairs), 2),
            "ratio": round(median(ratios), 2),
            "ratio_from_to": [round(min(ratios), 2), round(max(ratios), 2)],
        }
    return table


def table(results: Mapping[str, Any]) -> str:
    """Return a Markdown table of the stored results."""
    rows = [
        f"| {title}, {unit} | {found['earlier']:g} | {found['here']:g} | {found['ratio']:.2f}"
        f" [{found['ratio_from_to'][0]:.2f}, {found['ratio_from_to'][1]:.2f}] |"
        for (part, name), (title, unit) in TITLES.items()
        if (found := results.get(part, {}).get(name))
    ]
    first, *_ = results.values()
    rounds = ", ".join(f"{name} {found['rounds']}" for name, found in results.items())
    about = (
        f"{first['date']}, {first['cores']} cores. Medians of rounds in turns ({rounds}). Earlier:"
        f" commit {first['commits']['earlier']}. Brackets: smallest and largest ratio of a round."
    )
    head = "| | earlier | now | now / earlier |\n| --- | --- | --- | --- |"
    return "\n\n".join([about, "\n".join([head, *rows])])


def others(folder: Path) -> str:
    """Return tables of costs compared with plain implementations, and of large files.

    They are read from the results files of the other benchmarks.
    """
    tiny, scoring, steps, page = (
        json.loads((folder / f"{name}.json").read_text())
        for name in ("tiny_speed", "scoring", "step_time", "inspector")
    )
    step, real = tiny["step"], steps
    sampling = [
        part["ratio"]
        for part in tiny["generation"].values()
        if isinstance(part, dict) and "ratio" in part
    ]
    ratios = [run["seconds"] / run["bare_client_seconds"] for run in scoring["throughput"]["runs"]]
    rows = [
        [
            "TruthRL's step on the tiny bench, graded and recorded",
            "the same step with a constant reward and no record",
            f"{step['ratio']:.2f}; share of grading: {tiny['grading']['share_of_step']:.2f}",
        ],
        [
            "sampling by the tiny policy: short greedy answers, 4 samples, biographies",
            "tokens per second of transformers' `generate`",
            ", ".join(f"{ratio:.1f}" for ratio in sampling),
        ],
        [
            "scoring 50 answers of 19 claims by a judge that takes 50 ms, 64 requests at a time",
            "a client that only sends as many requests",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        ],
        [
            f"RLFH's step on {real['policy']}, {real['rollouts']} rollouts of"
            f" {real['tokens']} tokens (pairs of steps: {real['pairs']})",
            "the same step with a constant reward",
            f"{real['ratio']:.2f}; peak memory {real['peak_mb'] / 1000:.1f} GB, with gradient"
            f" checkpointing {real['peak_mb_recomputing'] / 1000:.1f} GB",
        ],
    ]
    memory = [
        f"{one['peak_rss_mb']:.0f} MB for {one['responses']:,} responses"
        for one in scoring["memory"]
    ]
    large = [
        [f"the inspector opens a run of {page['rows']:,} rows", f"{page['open the large run']} s"],
        ["the same, the first time", f"{page['open the large run, not read before']} s"],
        ["it shows 200 claims by another method", f"{page['switch the method of 200 claims']} s"],
        ["its peak memory with that run", f"{page['peak megabytes of the server']:.0f} MB"],
        ["peak memory of `workbench score` with a judge", ", ".join(memory)],
    ]
    return "\n\n".join(
        "\n".join([head, *("| " + " | ".join(row) + " |" for row in some)])
        for head, some in (
            ("| | compared with | ratio |\n| --- | --- | --- |", rows),
            ("| | |\n| --- | --- |", large),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    slices = os.environ.get("WORKBENCH_SLICES")
    parser.add_argument("--than", type=Path, required=True, help="checkout of an earlier version")
    parser.add_argument("--slices", type=Path, default=slices, help="default: $WORKBENCH_SLICES")
    parser.add_argument("--parts", nargs="+", default=["help", "typo", "inspector", "demo"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    parts: dict[str, Callable[[Path], dict[str, float]]] = {
        "help": lambda checkout: command(checkout, "--help"),
        "typo": lambda checkout: command(checkout, "trian", code=2),
        "inspector": inspector,
        "verifier": partial(verifier, slices=given.slices),
        "demo": demo,
    }
    folders = {"here": ROOT, "earlier": given.than.resolve()}
    commits = {
        name: subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name, folder in folders.items()
    }
    results = (
        json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    )
    for name in given.parts:
        rounds = [
            {label: parts[name](folder) for label, folder in folders.items()}
            for _ in range(given.rounds)
        ]
        results[name] = {
            "date": date.today().isoformat(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "rounds": given.rounds,
            "commits": commits,
            **compared({label: [one[label] for one in rounds] for label in folders}),
        }
        print(json.dumps({name: results[name]}, indent=1), flush=True)
        if given.results:
            given.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
