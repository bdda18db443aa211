"""Measure the throughput of a judge at an endpoint.

    python benchmarks/judge_throughput.py --results benchmarks/results/judge_throughput.json

One run compares it with a serial loop and with the server's own limit. The prompts are those
of 50 responses of 19 claims: 50 extractions, 950 verifications and 50 ratings, all different. The
server is a separate process on the same machine. It takes 50 ms per reply and counts its requests.
The same work is also sent with httpx instead of aiohttp, and twice with a cache: first to fill it,
then from it.
"""

import argparse
import asyncio
import http.client
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import date
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from workbench.judge import endpoint, render
from workbench.types import Prompt

ROOT = Path(__file__).resolve().parent.parent
WORDS = (
    "the of and in was a to born city river work known year first book lived north school moved age"
).split()


def work(responses: int, claims: int, name: str) -> list[Prompt]:
    """Return the prompts of a scoring run; each `name` gives different prompts."""
    prompts = []
    for n in range(responses):
        question = f"Tell me about person {n} of {name}."
        said = [
            f"Fact {c} about person {n} of {name}: {' '.join(WORDS[(n + c) % 9 :])}."
            for c in range(claims)
        ]
        passages = [f"{' '.join(WORDS * 4)} {n} {k}." for k in range(5)]  # about 80 words each
        prompts.append(render("extract", question=question, response=" ".join(said)))
        prompts += [
            render("verify", question=question, passages=passages, claims=[claim]) for claim in said
        ]
        prompts.append(render("inform", question=question, response=" ".join(said), claims=said))
    return prompts


def body(prompt: Prompt) -> bytes:
    return json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": prompt.text}], "temperature": 0}
    ).encode()


def one_by_one(url: str, prompts: list[Prompt]) -> None:
    """Send prompts one at a time, on one open connection, with the standard library only."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    for prompt in prompts:
        headers = {"Content-Type": "application/json", "X-Workbench-Task": prompt.task}
        connection.request("POST", f"{parts.path}/chat/completions", body(prompt), headers)
        json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]


def with_httpx(url: str, prompts: list[Prompt], concurrency: int) -> None:
    import httpx

    async def main() -> None:
        waiting = iter(prompts)
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:

            async def one() -> None:
                for prompt in waiting:
                    headers = {"Content-Type": "application/json", "X-Workbench-Task": prompt.task}
                    reply = await client.post(
                        f"{url}/chat/completions", content=body(prompt), headers=headers
                    )
                    reply.json()["choices"][0]["message"]["content"]

            await asyncio.gather(*(one() for _ in range(concurrency)))

    asyncio.run(main())


def timed(server: str, run, prompts: list[Prompt]) -> dict:
    """Return the seconds of a run and the server's count of its requests."""
    before = counted(server)
    began = time.perf_counter()
    run(prompts)
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 3),
        "prompts": len(prompts),
        "requests": counted(server) - before,
    }


def counted(server: str) -> int:
    with urllib.request.urlopen(server.removesuffix("/v1") + "/count") as reply:
        return json.load(reply).get("requests", 0)


def measure(server: str, settings: argparse.Namespace) -> dict:
    def judge(prompts: list[Prompt], cache: str | None = None) -> None:
        replies = endpoint(server, "m", concurrency=settings.concurrency, cache=cache)(prompts)
        assert all(reply.error is None for reply in replies)

    judge(work(4, 16, "the first connections"))  # warm-up: imports and templates
    size = (settings.responses, settings.claims)
    rounds = [timed(server, judge, work(*size, f"round {n}")) for n in range(settings.rounds)]
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder, "judge.sqlite"))
        storing = timed(server, lambda prompts: judge(prompts, cache), work(*size, "the cache"))
        stored = timed(server, lambda prompts: judge(prompts, cache), work(*size, "the cache"))
    other = timed(
        server,
        lambda prompts: with_httpx(server, prompts, settings.concurrency),
        work(*size, "httpx"),
    )
    sample = work(*size, "the loop")[: settings.serial]
    serial = timed(server, lambda prompts: one_by_one(server, prompts), sample)
    calls = rounds[0]["prompts"]
    seconds = sorted(one["seconds"] for one in rounds)[len(rounds) // 2]
    limit = calls * settings.delay / settings.concurrency
    whole = serial["seconds"] / len(sample) * calls
    return {
        "server_limit_seconds": round(limit, 3),
        "seconds": seconds,
        "times_the_limit": round(seconds / limit, 2),
        "times_faster_than_one_by_one": round(whole / seconds, 1),
        "rounds": rounds,
        "with_a_new_cache": storing,
        "from_the_cache": stored,
        "httpx_instead": other,
        "one_by_one": {**serial, "seconds_for_all": round(whole, 1)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=50)
    parser.add_argument("--claims", type=int, default=19)
    parser.add_argument(
        "--delay", type=float, default=0.05, help="seconds that the server takes for a reply"
    )
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the result is their median")
    parser.add_argument(
        "--serial",
        type=int,
        default=300,
        help="prompts for the serial loop, whose time is scaled to all prompts",
    )
    parser.add_argument("--results", type=Path)
    settings = parser.parse_args()
    command = [sys.executable, "-m", "benchmarks.scripted_judge", "--delay", str(settings.delay)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout
            found = measure(process.stdout.readline().strip(), settings)
        finally:
            process.terminate()
    given = {name: value for name, value in vars(settings).items() if name != "results"}
    results = {
        "date": date.today().isoformat(),
        "command": "python benchmarks/judge_throughput.py",
        "settings": given,
        "cores": os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("aiohttp", "httpx")},
        },
        **found,
    }
    text = json.dumps(results, indent=1)
    print(text)
    if settings.results:
        settings.results.write_text(text + "\n")


if __name__ == "__main__":
    main()
