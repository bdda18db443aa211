"""Measure the speed of the tiny bench, part by part, compared with a plain implementation.

    python benchmarks/tiny_speed.py --results benchmarks/results/tiny_speed.json

The implementations take turns, so that other load affects both: trust the ratios. Parts that are
not measured keep their results.

- `generation`: tokens per second, compared with transformers' `generate`.
- `step`, `grading`: GRPO at a learning rate of 0, with TruthRL's settings and new questions in each
  step. Every other step is graded and recorded. The others get a constant reward and are not
  recorded, as in plain TRL.
"""

import argparse
import functools
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from transformers import TrainerCallback

from workbench.methods.bench import bench
from workbench.methods.method import training_questions
from workbench.methods.truthrl.method import METHOD as TRUTHRL
from workbench.policies.generate import Policy, Sampling, prompt_ids
from workbench.policies.hf import by_generate
from workbench.runs.folder import versions
from workbench.training.grpo_config import batches
from workbench.training.grpo_step import RolloutTrainer
from workbench.training.loading import load_trainee
from workbench.training.recorder import RolloutRecorder
from workbench.util.config import scaled
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads

ROOT = Path(__file__).resolve().parent.parent
WARM = 2  # warm-up steps, one of each kind


def in_turns(
    ways: dict[str, Callable[[], float]], rounds: int, warm: int = 1
) -> dict[str, list[float]]:
    """Return the values of each way in each round, after `warm` rounds that are not counted."""
    found = [{name: way() for name, way in ways.items()} for _ in range(warm + rounds)][warm:]
    return {name: [one[name] for one in found] for name in ways}


def compared(found: dict[str, list[float]], digits: int = 0) -> dict[str, Any]:
    """Return the medians by name, and the ratio of the first to the second: median and range."""
    first, second = found.values()
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    medians = {name: round(median(rates), digits) for name, rates in found.items()}
    spread = [round(min(ratios), 2), round(max(ratios), 2)]
    return {**medians, "ratio": round(median(ratios), 2), "ratio_from_to": spread}


def hf_generate(policy: Policy, prompts: Sequence[list[int]], how: Sampling) -> int:
    """Generate with transformers in left-padded batches of 256; return the number of tokens."""
    ordered, pad = sorted(map(tuple, prompts), key=len, reverse=True), policy.tokenizer.pad_token_id
    return sum(map(len, by_generate(policy.model, pad, ordered, policy.stop_ids, how, 256)))


def engine(policy: Policy, prompts: Sequence[list[int]], how: Sampling) -> int:
    return sum(len(ids) for ids, _ in policy.complete(list(prompts), policy.stop_ids, how))


def generation(rounds: int) -> dict[str, Any]:
    """Measure tokens per second of the shipped policy in evaluations."""
    tiny = bench("tiny")
    policy = tiny.load("sft")

    def rate(way: Callable[..., int], prompts: Sequence[list[int]], how: Sampling) -> float:
        began = time.perf_counter()
        return way(policy, prompts, how) / (time.perf_counter() - began)

    def measured(kinds: Sequence[str] | None, **sampling: int | bool) -> dict[str, Any]:
        how, questions = Sampling(**{**sampling, "samples": 1}), tiny.questions("test", kinds)
        prompts = [
            ids
            for ids in prompt_ids(policy.tokenizer, questions)
            for _ in range(int(sampling.get("samples", 1)))
        ]
        ways = {
            "engine": lambda: rate(engine, prompts, how),
            "hf_generate": lambda: rate(hf_generate, prompts, how),
        }
        return {"prompts": len(prompts), **sampling, **compared(in_turns(ways, rounds))}

    return {
        "unit": "tokens per second",
        "questions, greedy": measured(None, max_new_tokens=tiny.max_new_tokens, greedy=True),
        "questions, 4 samples": measured(None, max_new_tokens=tiny.max_new_tokens, samples=4),
        "biographies, greedy": measured(
            ["biography"], max_new_tokens=tiny.long_new_tokens, greedy=True
        ),
    }


class EveryOther(RolloutTrainer):
    """A trainer that grades and records the odd steps; even steps get a constant reward.

    `started` has the time at which each step began, `grading` the seconds of its rewards.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.started: list[float] = []
        self.grading: list[float] = []
        super().__init__(*args, **settings)
        started = self.started

        class Start(TrainerCallback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                started.append(time.perf_counter())

        self.add_callback(Start())

    def is_graded(self, step: int) -> bool:
        """Return whether a step, counted from 1, is graded and recorded."""
        return step % 2 == 1

    def reward(
        self, completion_ids: list[list[int]], number: list[int], **_: Any
    ) -> list[float | None]:
        start = time.perf_counter()
        self.graded_step = self.is_graded(self.state.global_step + 1)
        rewards = (
            super().reward(completion_ids, number) if self.graded_step else [0.0] * len(number)
        )
        self.grading.append(time.perf_counter() - start)
        return rewards

    def with_advantages(self, batch: dict[str, Any]) -> dict[str, Any]:
        return super().with_advantages(batch) if self.graded_step else batch

    def record_loss_inputs(self, batch: Mapping[str, Any], logprobs_BT: Any = None) -> None:
        if self.graded_step:
            super().record_loss_inputs(batch, logprobs_BT)

    def log_update(self, state: Any, logs: Mapping[str, Any]) -> None:
        if self.is_graded(state.global_step):
            super().log_update(state, logs)


def durations(started: Sequence[float]) -> list[float]:
    """Return the seconds from each start to the next."""
    return [after - before for before, after in itertools.pairwise(started)]


@functools.cache
def steps(each: int) -> dict[str, list[float]]:
    """Return the seconds of graded steps, of other steps, and of the rewards in graded steps."""
    tiny = bench("tiny")
    config = TRUTHRL.scales["tiny"]
    count = WARM + 2 * each
    settings = scaled(config.grpo, steps=count + 1, learning_rate=0.0, save_every=10 * count)
    trainee = load_trainee(tiny.path("sft"), **vars(settings.lora), seed=0)
    grade = TRUTHRL.grader(config, tiny.checks)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        with RolloutRecorder(
            out, TRUTHRL.name, grade, steps=count + 1, done=0, max_failed=0.2
        ) as recorder:
            questions = training_questions(config.prompts, tiny)
            trainer = EveryOther(settings, trainee, recorder, questions, out, seed=0)
            trainer.train()
    seconds = durations(trainer.started)
    assert len(seconds) == count, (len(seconds), count)  # without the last step, which saves
    grading = trainer.grading[WARM:count:2]
    return {
        "graded": seconds[WARM::2],
        "constant": seconds[WARM + 1 :: 2],
        "grading": grading,
    }


def step(rounds: int) -> dict[str, Any]:
    """Compare a training step with grading and recording to one without."""
    found = steps(2 * rounds)
    graded, constant = median(found["graded"]), median(found["constant"])
    return {
        "graded_s": graded,
        "constant_s": constant,
        "ratio": graded / constant,
        "seconds": found,
    }


def grading(rounds: int) -> dict[str, Any]:
    """Measure grading and storing a response of these steps."""
    found, responses = steps(2 * rounds), batches(TRUTHRL.scales["tiny"].grpo)[0]
    grading_seconds = median(found["grading"])
    shares = [part / whole for part, whole in zip(found["grading"], found["graded"], strict=True)]
    return {
        "ms_per_response": 1000 * grading_seconds / responses,
        "share_of_step": median(shares),
    }


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "generation": generation,
    "grading": grading,
    "step": step,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "threads": given.threads,
        "rounds": given.rounds,
    }
    results = (
        json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    )
    with use_threads(given.threads):
        for name in given.parts:
            results[name] = {**about, "versions": versions(), **PARTS[name](given.rounds)}
            print(json.dumps({name: results[name]}, indent=1), flush=True)
            if given.results:
                write_json(given.results, results)


if __name__ == "__main__":
    main()
