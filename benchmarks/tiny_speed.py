"""How long the parts of work on the tiny bench take, beside what would be the least.

    python benchmarks/tiny_speed.py --parts grading step start --results benchmarks/results/tiny_speed.json

`step` and `grading` train with GRPO at a learning rate of 0, TruthRL's settings and new questions in each step: every other
step is graded and recorded as in any run, the steps between are paid a constant and recorded nowhere, which is TRL's own work.
`start` is the time from a fresh process to the tiny bench, without and with the world's fingerprint in the cache. Medians; a
busy machine spoils all of these but the ratios.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from workbench.bench import bench
from workbench.generate import generate
from workbench.recipes import METHODS
from workbench.recipes.method import training_questions
from workbench.recipes.truthrl import METHOD as TRUTHRL
from workbench.runs.folder import versions
from workbench.threads import use_threads
from workbench.train.grpo import batches, make_trainer
from workbench.train.models import load_trainee
from workbench.train.record import Record
from workbench.train.trl_adapter import TRLAdapter

WARM = 2  # steps that are not counted, one of each sort
STEPS = 10  # steps of each sort that are
BIOGRAPHIES = 100


class EveryOther(TRLAdapter):
    """Grades and records the odd steps; the even ones are paid a constant.

    `begun` and `paying` are when each step began, and the seconds that it took to pay its responses.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.begun: list[float] = []
        self.paying: list[float] = []

    def reward(self, completion_ids: list[list[int]], number: list[int], trainer_state: Any, **_: Any) -> list[float | None]:
        start = time.perf_counter()
        graded = trainer_state.global_step % 2 == 0  # it counts the steps that are done
        paid = super().reward(completion_ids, number, trainer_state) if graded else [0.0] * len(number)
        self.paying.append(time.perf_counter() - start)
        return paid

    def callback(self) -> Any:
        begun = self.begun

        class Timed(type(super().callback())):  # type: ignore[misc]
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                begun.append(time.perf_counter())

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if state.global_step % 2:
                    super().on_log(args, state, control, logs)

        return Timed()


@functools.cache
def steps() -> dict[str, list[float]]:
    """Seconds of the graded steps, of those that were not, and of what paying took in the graded ones."""
    tiny = bench("tiny")
    config = TRUTHRL.scales["tiny"]
    count = WARM + 2 * STEPS
    settings = replace(config.grpo, steps=count + 1, learning_rate=0.0, save_every=10 * count)
    trainee = load_trainee(tiny.path("sft"), lora_r=settings.lora_r, lora_alpha=settings.lora_alpha, seed=0)
    grade = TRUTHRL.grader(config, tiny.checks)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        with Record(out, TRUTHRL.name, grade, steps=count + 1, done=0, max_failed=0.2) as record:
            questions = training_questions(config.prompts, tiny)
            adapter = EveryOther(record, questions, trainee.tokenizer, settings.group_size)
            make_trainer(settings, trainee, adapter, out=out, seed=0).train()
    seconds = [after - before for before, after in zip(adapter.begun, adapter.begun[1:], strict=False)]
    assert len(seconds) == count, (len(seconds), count)  # the last step, which saves, is left out
    paying = adapter.paying[WARM:count:2]
    return {"graded": seconds[WARM::2], "constant": seconds[WARM + 1 :: 2], "paying": paying}


def step() -> dict[str, Any]:
    """A training step with grading and recording, against one without."""
    found = steps()
    graded, constant = median(found["graded"]), median(found["constant"])
    return {"graded_s": graded, "constant_s": constant, "ratio": graded / constant, "seconds": found}


def grading() -> dict[str, Any]:
    """What grading and storing a response takes: in those training steps, and of biographies read for claims."""
    found, responses = steps(), batches(TRUTHRL.scales["tiny"].grpo)[0]
    paying = median(found["paying"])
    shares = [part / whole for part, whole in zip(found["paying"], found["graded"], strict=True)]
    return {"ms_per_response": 1000 * paying / responses, "share_of_step": median(shares), "ms_per_biography": _biographies()}


def _biographies() -> dict[str, float]:
    """Milliseconds a biography by each method that asks for claims, two samples a question."""
    tiny = bench("tiny")
    questions = tiny.questions("rl", ["biography"])[:BIOGRAPHIES]
    responses = generate(tiny.load("sft"), questions, max_new_tokens=tiny.long_new_tokens, samples=2)
    took = {}
    for method in METHODS.values():
        if method.name == TRUTHRL.name or not set(method.checks(method.config())) <= set(tiny.checks.verify):
            continue
        grade = method.grader(method.config(), tiny.checks)
        start = time.perf_counter()
        grade(responses)
        took[method.name] = 1000 * (time.perf_counter() - start) / len(responses)
    return took


def start(times: int = 3) -> dict[str, Any]:
    """Seconds from a fresh process to the tiny bench, and to the end of `workbench world show`."""
    commands = {
        "bench": ["-c", "from workbench.bench import bench; bench('tiny')"],
        "show": ["-m", "workbench.cli", "world", "show"],
    }
    found = {}
    for name, command in commands.items():
        cold, warm = [], []
        for _ in range(times):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(_process(command, cache))
                warm.append(_process(command, cache))
        found[name] = {"cold_s": median(cold), "warm_s": median(warm)}
    return found


def _process(command: Sequence[str], cache: str) -> float:
    begun = time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    subprocess.run([sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


PARTS: dict[str, Callable[[], dict[str, Any]]] = {"grading": grading, "step": step, "start": start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"date": date.today().isoformat(), "threads": given.threads, "versions": versions()}
    with use_threads(given.threads):
        for part in given.parts:
            found[part] = PARTS[part]()
            print(part, json.dumps(found[part]), flush=True)
    if given.results:
        given.results.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
