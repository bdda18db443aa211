"""Measure time and memory of `workbench score` with a judge that takes 50 ms, and of a replay.

    python benchmarks/scoring.py --out benchmarks/results/scoring.json

Fifty responses of 19 claims each are scored with 64 calls in flight. The server is a separate
process. Its own limit is requests × 50 ms / 64. In the same run, a serial loop sends the prompts of
the first `--serial` responses one at a time; its time is scaled to all. All this is repeated
`--repeats` times. Every time is listed, with the machine's load and the time of a client that only
sends as many requests. "best" is the fastest.

Memory is the peak of a process that scores 1,000 and 10,000 responses of 2 claims without delay.
The replay rewards 10,000 rows of labelled claims by all methods.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.scripted_judge import JudgeServer  # noqa: E402
from benchmarks.served import serving  # noqa: E402
from tests.helpers.score_helpers import reply, responses, write  # noqa: E402
from workbench.methods import METHODS  # noqa: E402

DELAY, IN_FLIGHT, CLAIMS = 0.05, 64, 19


def counts(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/count") as answer:
        return json.load(answer)


def measure(folder: Path, source: Path, *options: str) -> dict[str, Any]:
    """Score a file in a separate process; return summary, seconds, CPU seconds and peak memory."""
    command = [
        sys.executable,
        __file__,
        "--measure",
        str(source),
        str(folder / f"{source.stem}.out.jsonl"),
        *options,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(source: str, out: str, method: str, judge: str) -> None:
    """Time the file twice in this process.

    "first_seconds" include imports and compilation; the second time is that of a long job.
    """
    from workbench.scoring import Options, score_file

    def options(folder: str) -> Options:
        place = Path(out).parent / folder / Path(out).name
        place.parent.mkdir(exist_ok=True)
        return Options(
            Path(source),
            place,
            method=method,
            judge=judge or None,
            model="m" if judge else None,
            concurrency=IN_FLIGHT,
        )

    began = time.perf_counter()
    score_file(options("first"))
    first = time.perf_counter() - began
    chosen = options("second")  # a new folder, with nothing stored or cached
    began, cpu = time.perf_counter(), time.process_time()
    summary = score_file(chosen)
    output = {
        "first_seconds": round(first, 3),
        "seconds": round(time.perf_counter() - began, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_rss_mb": peak_memory(),
    }
    print(
        json.dumps(
            {
                **output,
                "summary": {
                    name: summary[name] for name in ("rows", "failed", "claims", "cost", "status")
                },
            }
        )
    )


def peak_memory(process: int | str = "self") -> float | None:
    """Return a process's peak memory in MB (Linux); `getrusage` includes the parent's."""
    status = Path(f"/proc/{process}/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return round(int(found[1]) / 1024, 1) if found else None


def serial(url: str, rows: list[dict[str, Any]]) -> tuple[float, int]:
    """Run the same checks, one prompt at a time; return seconds and calls."""
    from workbench.judge import endpoint
    from workbench.pipeline import grade
    from workbench.scoring.rows import parse
    from workbench.verdicts.checks import judge_checks

    one = endpoint(url, "m", concurrency=1)
    calls = 0

    def judge(prompts: Any) -> Any:
        nonlocal calls
        calls += len(prompts)
        return [one([prompt])[0] for prompt in prompts]

    checks = judge_checks(judge)
    run = grade([checks.verify["fact"]], {}, checks.extract)
    began = time.perf_counter()
    for row in rows:
        assert run([parse(row, {}, {}).response])[0].error is None
    return time.perf_counter() - began, calls


async def bare(url: str, requests: int) -> float:
    """Return the seconds of a client that only sends the requests and reads the bodies."""
    import aiohttp

    body = {"model": "m", "messages": [{"role": "user", "content": "<claim>x</claim>"}]}
    waiting = iter(range(requests))

    async def work(session: Any) -> None:
        for _ in waiting:
            async with session.post(
                f"{url}/chat/completions", json=body, headers={"X-Workbench-Task": "verify"}
            ) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
        return time.perf_counter() - began


def throughput(folder: Path, count: int, sample: int, repeats: int) -> dict[str, Any]:
    rows = responses(count, CLAIMS, thinking=False)
    source = write(folder / "long.jsonl", rows)
    runs = []
    for _ in range(repeats):
        with serving(__file__, str(DELAY)) as url:
            run = measure(folder, source, "rlfh", url)
            seen = counts(url)
            floor = asyncio.run(bare(url, seen["requests"] // 2))
            seconds, calls = serial(url, rows[:sample])
        for name in ("first", "second"):
            shutil.rmtree(folder / name)
        requests = seen["requests"] // 2  # per scoring
        limit = requests * DELAY / IN_FLIGHT
        whole = seconds * count / sample
        runs.append(
            {
                "seconds": run["seconds"],
                "first_seconds": run["first_seconds"],
                "cpu_seconds": run["cpu_seconds"],
                "load": round(os.getloadavg()[0], 1),
                "requests": requests,
                "unique_prompts": seen["unique"],
                "peak_in_flight": seen["peak"],
                "claims": run["summary"]["claims"],
                "failed": run["summary"]["failed"],
                "server_limit_seconds": round(limit, 3),
                "times_the_limit": round(run["seconds"] / limit, 2),
                "bare_client_seconds": round(floor, 3),
                "serial_calls": calls,
                "serial_seconds": round(seconds, 2),
                "serial_seconds_for_all": round(whole, 1),
                "times_faster_than_serial": round(whole / run["seconds"], 1),
            }
        )
    best = min(runs, key=lambda one: one["seconds"])
    settings = {
        "responses": count,
        "delay_seconds": DELAY,
        "in_flight": IN_FLIGHT,
        "serial_responses": sample,
    }
    return {**settings, "best": best, "runs": runs}


def memory(folder: Path, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        with serving(__file__, "0.0") as url:
            run = measure(
                folder,
                write(folder / f"rows{size}.jsonl", responses(size, 2, thinking=False)),
                "rlfh",
                url,
            )
        found.append(
            {
                "responses": size,
                **{name: run[name] for name in ("seconds", "cpu_seconds", "peak_rss_mb")},
                "calls": run["summary"]["cost"]["calls"],
                "failed": run["summary"]["failed"],
            }
        )
    return found


def replay(folder: Path, size: int) -> dict[str, Any]:
    """Reward shorthand rows of six labelled claims by all methods."""
    rows = []
    for row in responses(size, 6):
        texts = re.findall(r"Fact [^.]+", row["response"])
        claims = [{"text": text, "label": "correct", "informativeness": 4} for text in texts]
        rows.append(
            {"id": row["id"], "response": row["response"], "claims": claims, "outcome": "correct"}
        )
    run = measure(folder, write(folder / "replay.jsonl", rows), "all", "")
    return {
        "rows": size,
        "methods": len(METHODS),
        "claims": run["summary"]["claims"],
        **{name: run[name] for name in ("seconds", "cpu_seconds", "peak_rss_mb")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--responses", type=int, default=50)
    parser.add_argument(
        "--serial", type=int, default=5, help="responses that the serial loop scores"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--rows", type=int, default=10_000, help="rows of the memory and replay measurements"
    )
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        JudgeServer(reply=reply, delay=arguments.serve).serve()
    if arguments.measure:
        return measured(*arguments.measure)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {
            "date": datetime.now(UTC).date().isoformat(),
            "command": "python benchmarks/scoring.py --out benchmarks/results/scoring.json",
            "machine": {
                "system": platform.system(),
                "python": platform.python_version(),
                "cpus": os.cpu_count(),
            },
            "versions": versions(),
            "throughput": throughput(
                folder, arguments.responses, arguments.serial, arguments.repeats
            ),
            "replay": replay(folder, arguments.rows),
            "memory": memory(folder, (arguments.rows // 10, arguments.rows)),
        }
    text = json.dumps(results, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("factuality-workbench", "aiohttp", "rapidfuzz")}


if __name__ == "__main__":
    main()
