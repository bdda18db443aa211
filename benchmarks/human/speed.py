"""Claims per second and peak memory of the local pipeline on one thread."""

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.human import spans, verdicts
from workbench.claims import rules
from workbench.util.threads import use_threads
from workbench.verifier import Verifier, load_verifier

SHORT, LONG, REPEATS = 96, 24, 3


def speed(folder: Path, path: Path | None) -> dict[str, Any]:
    """Measure short pairs, and claims of answers with all their passages.

    Peak memory needs a separate process.
    """
    verifier = load_verifier(path)
    marked = spans.qa_feedback(folder)
    found = rules()([one.response for one in marked])
    pairs = verdicts.SETS["BEGIN, Wizard of Wikipedia"].read(folder)
    short = [(pair.claim, pair.passages) for pair in pairs]
    long = [
        (c.text, one.response.question.passages)
        for one, made in zip(marked, found, strict=True)
        for c in made.claims
    ]
    with use_threads(1):
        timed = {
            "short_pairs": _timed(verifier, short[:SHORT]),
            "three_passages": _timed(verifier, long[:LONG]),
        }
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {
        "threads": 1,
        "load": round(os.getloadavg()[0], 1),
        **timed,
        "peak_rss_mb": peak,
    }


def _timed(verifier: Verifier, work: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """List all times (wall, CPU), and the rates of the fastest; the cores may have other load."""
    times = []
    for _ in range(REPEATS):
        began, cpu = time.perf_counter(), time.process_time()
        windows = sum(check.windows for check in verifier.check_all(work))
        times.append((round(time.perf_counter() - began, 3), round(time.process_time() - cpu, 3)))
    seconds, cpu = (min(column) for column in zip(*times, strict=True))
    rates = {
        "claims_per_second": round(len(work) / seconds, 1),
        "claims_per_cpu_second": round(len(work) / cpu, 1),
    }
    return {"claims": len(work), "windows": windows, "seconds": times, **rates}
