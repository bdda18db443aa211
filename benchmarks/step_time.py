"""Measure what token-level credit adds to a training step.

    python benchmarks/step_time.py --results benchmarks/results/step_time.json

All parts train on RLFH's biographies on the tiny bench. The learning rate is 0 (1e-12 in `ppo` and
`memory`), so the policy does not change.

- `claims`: GRPO with returns-to-go, compared with plain TRL. Every other step extracts and judges
  claims, rewards tokens and records rows. The others get a constant reward and no record.
- `granularity`: steps that reward statements alternate with steps that reward paragraphs.
- `ppo`: PPO and GRPO with as many rollouts, in turns.
- `memory`: memory of the process over 200 steps.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from tiny_speed import WARM, EveryOther, compared, durations, in_turns

from workbench.methods import METHODS
from workbench.methods.bench import bench
from workbench.methods.method import scaled, training_questions
from workbench.runs.folder import versions
from workbench.training.grpo import train_grpo
from workbench.training.grpo_config import GRPO
from workbench.training.loading import load_trainee
from workbench.training.ppo import PPO, train_ppo
from workbench.training.recorder import RolloutRecorder
from workbench.types import Feedback, Grade, Response
from workbench.util.jsonl import iter_rows, write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads

RLFH = METHODS["rlfh"]
STILL: dict[str, Any] = {
    "learning_rate": 0.0,
    "prompts_per_step": 16,
    "group_size": 8,
    "max_new_tokens": 64,
}
MB = 2**20


def config_of(**changes: Any) -> Any:
    return scaled(RLFH.configure("tiny", ["rlfh.trainer=grpo"]), **changes)


def settings(config: Any, steps: int) -> GRPO:
    return scaled(config.grpo, **STILL, steps=steps, save_every=10 * steps)


def steps(grade: Grade, count: int, trainer_type: type[EveryOther]) -> list[float]:
    """Return the seconds of `count` steps, after `WARM` warm-up steps."""
    config = config_of()
    grpo = settings(config, WARM + count + 1)
    tiny = bench("tiny")
    questions = training_questions(config.prompts, tiny, answered=False)
    trainee = load_trainee(tiny.path("sft"), **vars(grpo.lora), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        with RolloutRecorder(
            out, RLFH.name, grade, steps=grpo.steps, done=0, max_failed=0.2
        ) as recorder:
            trainer = trainer_type(grpo, trainee, recorder, questions, out, seed=0)
            trainer.train()
    return durations(trainer.started)[WARM : WARM + count]


class Every(EveryOther):
    """A trainer that grades and records all steps."""

    def is_graded(self, step: int) -> bool:
        return True


def claims(rounds: int) -> dict[str, Any]:
    grade = RLFH.grader(config_of(), bench("tiny").checks)
    return alternated(steps(grade, 2 * rounds, EveryOther), ("claims_s", "constant_s"))


def granularity(rounds: int) -> dict[str, Any]:
    checks, calls = bench("tiny").checks, iter(range(10**6))
    by_statement, by_paragraph = (
        RLFH.grader(config_of(granularity=name), checks) for name in ("statement", "paragraph")
    )

    def grade(responses: Sequence[Response]) -> list[Feedback]:
        return (by_paragraph if next(calls) % 2 else by_statement)(responses)

    return alternated(steps(grade, 2 * rounds, Every), ("statement_s", "paragraph_s"))


def alternated(seconds: Sequence[float], names: tuple[str, str]) -> dict[str, Any]:
    """Return the medians of the even and of the odd steps, and of the ratios of pairs."""
    first, second = seconds[::2], seconds[1::2]
    ratios = [one / other for one, other in zip(first, second, strict=True)]
    return {
        "pairs": len(ratios),
        names[0]: median(first),
        names[1]: median(second),
        "ratio": median(ratios),
        "ratio_from_to": [min(ratios), max(ratios)],
    }


def ppo(rounds: int, each: int = 5, turns: int = 3) -> dict[str, Any]:
    """Compare short trainings in turns, by the median of all steps but the first."""
    tiny, config = bench("tiny"), config_of()
    grade, questions = (
        RLFH.grader(config, tiny.checks),
        training_questions(config.prompts, tiny, answered=False),
    )
    grpo = settings(config, each + 1)
    by_ppo: PPO = scaled(
        config.ppo,
        **{**STILL, "learning_rate": 1e-12},
        critic_learning_rate=1e-12,
        steps=each + 1,
        save_every=10 * each,
    )

    def run(train: Callable[..., Any], how: Any) -> float:
        with tempfile.TemporaryDirectory() as folder:
            train(how, questions, grade, tiny.path("sft"), Path(folder), method=RLFH.name, seed=0)
            return median(
                row["seconds"] for row in list(iter_rows(Path(folder) / "metrics.jsonl"))[1:]
            )

    small = scaled(grpo, learning_rate=1e-12)
    ways = {"ppo_s": lambda: run(train_ppo, by_ppo), "grpo_s": lambda: run(train_grpo, small)}
    return {"turns": turns, "steps": each, **compared(in_turns(ways, turns, warm=0), digits=3)}


def memory(rounds: int, count: int = 200, every: int = 20) -> dict[str, Any]:
    """Measure the megabytes of the process every 20 steps."""
    held: list[float] = []
    inner = RLFH.grader(config_of(), bench("tiny").checks)
    calls = iter(range(10**6))

    def grade(responses: Sequence[Response]) -> list[Feedback]:
        if next(calls) % every == 0:
            held.append(resident())
        return inner(responses)

    tiny, config = bench("tiny"), config_of()
    questions = training_questions(config.prompts, tiny, answered=False)
    small = scaled(
        settings(config, count), prompts_per_step=4, learning_rate=1e-12, save_every=count
    )
    with tempfile.TemporaryDirectory() as folder:
        status = train_grpo(
            small, questions, grade, tiny.path("sft"), Path(folder), method=RLFH.name, seed=0
        )
        assert status == "done", status  # all steps must run
    return {
        "steps": count,
        "every": every,
        "mb": held,
        "last_to_third": round(held[-1] / held[2], 3),
    }


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MB, 1)


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "claims": claims,
    "granularity": granularity,
    "ppo": ppo,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {"date": date.today().isoformat(), "cores": os.cpu_count(), "threads": given.threads}
    results = (
        json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    )
    with use_threads(given.threads):
        for name in given.parts:
            results[name] = {**about, "versions": versions(), **PARTS[name](given.rounds)}
            print(
                json.dumps({name: {k: v for k, v in results[name].items() if k != "versions"}}),
                flush=True,
            )
            if given.results:
                write_json(given.results, results)


if __name__ == "__main__":
    main()
