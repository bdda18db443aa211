"""Profile the longest waits of docs/scaling.md: where does the time go?

    python benchmarks/profiles.py --results benchmarks/results/profiles.json

Each part runs in a process of its own, with one thread. Other Python threads are not profiled. A
function's own time counts for its package, such as "torch"; the time of a function written in C
counts for torch if it is one of torch's, otherwise for the package that calls it.

- `demo`: one of the two runs of `workbench demo`.
- `grading`: grades and stores the 512 responses of a step of TruthRL on the tiny bench, by module.
- `sampling`: short greedy answers of the tiny policy.
- `judge`: `workbench score` with a judge that takes 50 ms, without the time in which it waits.
- `inspector`: imports of `workbench inspect`, by package.
- `passages`: the local verifier checks claims with three long passages, by torch's operation.
- `build`: steps of pre-training of the tiny policy, by torch's operation, and Python's share.
- `rlfh`: a short training by RLFH on the tiny bench.
- `verifier`: memory of the local verifier after each step, in MB.
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.tables import markdown  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402

ONE = os.environ | {"OMP_NUM_THREADS": "1"}
LEAST = 0.03  # smaller shares are added up
WAITING = re.compile(r"\b(?:acquire|select|poll|sleep)\b")  # names of C functions that wait


def package(file: str) -> str:
    """Return the package of a source file: "torch", "workbench", or "python" for its library."""
    if found := re.search(r"site-packages/(\w+)", file):
        return found[1]
    return "workbench" if "/workbench/" in file else "python"


def module(file: str) -> str:
    """Return a module of this library, such as "workbench/text", else the package."""
    found = re.search(r"/(workbench/\w+)", file)
    return found[1] if found else package(file)


def shares(profile: cProfile.Profile, named: Callable[[str], str] = package) -> dict[str, float]:
    """Return the share of the time in each part, in descending order, without waiting."""
    seconds = defaultdict[str, float](float)
    for (file, _, name), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file != "~":
            seconds[named(file)] += own
        elif "torch" in name:
            seconds["torch"] += own
        elif not WAITING.search(name):
            for (caller, *_), (*_, spent, _) in callers.items():
                seconds[named(caller)] += spent
    return largest(seconds)


def largest(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return each part's share of the total; those below `LEAST` are one part, "other"."""
    total, found = sum(amounts.values()), defaultdict[str, float](float)
    for name, amount in amounts.items():
        found[name if amount >= LEAST * total else "other"] += amount / total
    ordered = sorted(found.items(), key=lambda one: (one[0] == "other", -one[1]))
    return {name: round(share, 3) for name, share in ordered}


def profiled(work: Callable[[], object], named: Callable[[str], str] = package) -> dict[str, float]:
    """Return the shares of a function's time."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return shares(profile, named)


def by_operation(work: Callable[[], object]) -> dict[str, float]:
    """Return the shares of torch's operations, and of everything else as "python"."""
    from torch.profiler import ProfilerActivity, profile

    began = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        work()
        seconds = time.perf_counter() - began
    spent = {
        one.key.removeprefix("aten::"): one.self_cpu_time_total / 1e6
        for one in found.key_averages()
    }
    return largest({**spent, "python": seconds - sum(spent.values())})


def demo() -> dict[str, float]:
    from workbench.experiments.demo import demo_run

    with tempfile.TemporaryDirectory() as folder:
        return profiled(lambda: demo_run(Path(folder, "run"), "ternary", seed=1, threads=1))


def grading() -> dict[str, float]:
    from workbench.methods.bench import bench
    from workbench.methods.truthrl.method import METHOD
    from workbench.policies.generate import generate
    from workbench.runs.store import Store

    tiny, config = bench("tiny"), METHOD.scales["tiny"]
    policy, questions = tiny.load("sft"), tiny.questions("rl")
    write = partial(generate, policy, max_new_tokens=tiny.max_new_tokens, samples=8)
    # new questions in each step, because answers that repeat are graded faster
    first, *steps = [write(questions[start : start + 64]) for start in range(0, 704, 64)]
    grade = METHOD.grader(config, tiny.checks)
    grade(first)  # imports
    gc.freeze()  # as a training does: otherwise each collection scans the loaded modules

    def step() -> None:
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
            for written in steps:
                store.append(grade(written))

    return profiled(step, module)


def sampling() -> dict[str, float]:
    from workbench.methods.bench import bench
    from workbench.policies.generate import generate

    tiny = bench("tiny")
    policy, questions = tiny.load("sft"), tiny.questions("test")

    def sample() -> None:
        generate(policy, questions, max_new_tokens=tiny.max_new_tokens, greedy=True)

    sample()
    return profiled(sample)


def judge() -> dict[str, float]:
    from benchmarks.scoring import CLAIMS, DELAY, IN_FLIGHT, responses, serving, write
    from workbench.scoring import Options, score_file

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write(folder / "long.jsonl", responses(50, CLAIMS, thinking=False))
        with serving(str(ROOT / "benchmarks" / "scoring.py"), str(DELAY)) as url:

            def score(out: str) -> None:
                options = Options(
                    source,
                    folder / out / "out.jsonl",
                    method="rlfh",
                    judge=url,
                    model="m",
                    concurrency=IN_FLIGHT,
                )
                score_file(options)

            score("first")
            return profiled(lambda: score("second"))


def build() -> dict[str, float]:
    from rich.progress import Progress

    from workbench.experiments.tiny.config import SIZES
    from workbench.experiments.tiny.training import (
        Encoder,
        Stage,
        new_model,
        pretraining_batches,
    )
    from workbench.methods.bench import bench
    from workbench.world import load_world

    tiny, config = bench("tiny"), SIZES["full"]
    tokenizer = tiny.load("base").tokenizer
    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    data, _, _ = pretraining_batches(load_world(), encoder, config, 0)
    model = new_model(config, tokenizer, 0)

    def train(folder: str, steps: int) -> float:
        file = Path(folder, f"{steps}.pt")
        stage = Stage("build", steps, config.lr, data, file, "")
        with Progress(disable=True) as progress:
            return stage.run(model, config, progress)

    with tempfile.TemporaryDirectory() as folder:
        train(folder, 3)
        return by_operation(lambda: train(folder, 40))


def rlfh() -> dict[str, float]:
    from workbench.experiments.run import Entry, plan_run

    with tempfile.TemporaryDirectory() as folder:
        run = plan_run(Entry("rlfh", 1, settings=["rlfh.eval_samples=0"], threads=1), Path(folder))
        return profiled(lambda: run.train(Path(folder, "run")))


def inspector() -> dict[str, float]:
    code = "from workbench.inspector import page; page.import_gradio()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    seconds: Counter[str] = Counter()
    for own, name in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)", done.stderr):
        seconds[name.partition(".")[0]] += int(own)
    return largest(seconds)


def passages() -> dict[str, float]:
    from workbench.types import Passage
    from workbench.util.threads import use_threads
    from workbench.verifier import load_verifier
    from workbench.world import load_world

    checker, pages = load_verifier(), load_world().pages
    texts = [" ".join(page.text for page in pages[n : n + 20]) for n in (0, 20, 40)]
    long = tuple(Passage(str(n), "pages", text) for n, text in enumerate(texts))
    work = [(page.text.partition(".")[0] + ".", long) for page in pages[:24]]
    checker.check_all(work[:1])
    with use_threads(1):
        return by_operation(lambda: checker.check_all(work))


def verifier() -> dict[str, float]:
    from benchmarks.scoring import peak_memory
    from workbench.util.imports import light_transformers

    found: dict[str, float] = {}

    def note(step: str) -> None:
        status = Path("/proc/self/status").read_text()
        [resident] = re.findall(r"VmRSS:\s*(\d+) kB", status)
        found[step] = round(int(resident) / 1024)

    note("this benchmark")
    import torch  # noqa: F401
    import transformers  # noqa: F401

    note("with torch and transformers")
    from workbench import local_checks, score

    with light_transformers():  # as in a command
        checks = local_checks()
        passages = ["The tower was finished in 1889. It is made of iron. " * 100] * 3
        score("It was finished in 1889.", "What is it?", passages=passages, checks=checks)
    note("with the verifier, after a claim")
    found["peak"] = round(peak_memory() or 0)
    return found


PARTS = {
    one.__name__: one
    for one in (demo, grading, sampling, judge, inspector, passages, build, rlfh, verifier)
}
TITLES = {
    "demo": "one run of `workbench demo`",
    "grading": "grading and storing a step's responses",
    "sampling": "sampling short answers with the tiny policy",
    "judge": "scoring by a judge, without waiting",
    "inspector": "imports of the inspector",
    "passages": "the local verifier, claims with three long passages, by operation",
    "build": "pre-training the tiny policy, by operation",
    "rlfh": "one run of RLFH in the closed world",
}


def table(found: Mapping[str, Any]) -> str:
    """Return the profiles as a table, and the verifier's memory as a sentence."""
    rows = [
        [title, ", ".join(f"{name} {share:.0%}" for name, share in found[part].items())]
        for part, title in TITLES.items()
    ]
    memory = ", ".join(f"{step} {size} MB" for step, size in found["verifier"].items())
    return f"{markdown(['', 'share of the time'], rows)}\n\nMemory of the local verifier: {memory}."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part]()))
        return
    found: dict[str, Any] = {"date": date.today().isoformat()}
    for part in PARTS:
        command = [sys.executable, __file__, "--part", part]
        done = subprocess.run(command, env=ONE, stdout=subprocess.PIPE, text=True, check=True)
        found[part] = json.loads(done.stdout.splitlines()[-1])
        print(part, found[part], flush=True)
    if given.results:
        write_json(given.results, found)


if __name__ == "__main__":
    main()
