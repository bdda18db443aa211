"""Measure what token-level credit adds to a training step.

    python benchmarks/step_time.py --results benchmarks/results/step_time.json

All parts but `real` train on RLFH's biographies on the tiny bench. The learning rate is 0 (1e-12 in
`ppo` and `memory`), so the policy does not change.

- `claims`: GRPO with returns-to-go, compared with plain TRL. Every other step extracts and judges
  claims, rewards tokens and records rows. The others get a constant reward and no record.
- `granularity`: steps that reward statements alternate with steps that reward paragraphs.
- `ppo`: PPO and GRPO with as many rollouts, in turns.
- `memory`: memory of the process over 200 steps.
- `real`: as `claims`, on a language model from `--policy FOLDER`, with real facts, the local
  verifier and 32 rollouts of at most 64 tokens; also the peak memory of this process, once
  with gradient checkpointing (the default), once without.

    python benchmarks/step_time.py --parts real --rounds 3 --policy models/smollm2
"""

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tiny_speed import WARM, EveryOther, compared, durations, in_turns

from workbench.methods import METHODS
from workbench.methods.bench import Bench, bench
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
from workbench.verdicts.llm_judge import LocalJudge

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


def steps(
    grade: Grade,
    count: int,
    trainer_type: type[EveryOther],
    config: Any = None,
    place: Bench | None = None,
) -> list[float]:
    """Return the seconds of `count` steps, after `WARM` warm-up steps."""
    config, place = config or config_of(), place or bench("tiny").with_policy("sft")
    grpo = settings(config, WARM + count + 1)
    questions = training_questions(config.prompts, place, answered=False)
    trainee = load_trainee(place.path(place.policy), **vars(grpo.lora), seed=0)
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


def real(rounds: int, policy: Path | None) -> dict[str, Any]:
    assert policy, "name a model's folder with --policy"
    place = bench("small").with_policy(str(policy)).with_judge(LocalJudge())
    changes = [
        "rlfh.trainer=grpo",
        "rlfh.kinds=long_form",
        "rlfh.grpo.temperature=0.7",
        "rlfh.grpo.micro_batch=16",
        "rlfh.grpo.lora_r=16",
    ]
    STILL.update(prompts_per_step=8, group_size=4)

    def measured(count: int, *own: str) -> tuple[list[float], int]:
        """Return the seconds of `count` steps, and the peak memory so far in MB."""
        config = scaled(RLFH.configure("small", [*changes, *own]), prompts_per_step=8, group_size=4)
        grade = RLFH.grader(config, place.checks)
        seconds = steps(grade, count, EveryOther, config=config, place=place)
        return seconds, round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    # first with gradient checkpointing, the default: the peak of a process never falls
    _, recomputing = measured(0)
    seconds, keeping = measured(2 * rounds, "rlfh.grpo.gradient_checkpointing=no")
    return {
        "policy": policy.name,
        "rollouts": 32,
        "tokens": STILL["max_new_tokens"],
        **alternated(seconds, ("claims_s", "constant_s")),
        "peak_mb": keeping,
        "peak_mb_recomputing": recomputing,
    }


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MB, 1)


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "claims": claims,
    "granularity": granularity,
    "ppo": ppo,
    "memory": memory,
    "real": real,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS)[:-1])
    parser.add_argument("--policy", type=Path, help="folder of a language model, for `real`")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {"date": date.today().isoformat(), "cores": os.cpu_count(), "threads": given.threads}
    results = (
        json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    )
    parts = {**PARTS, "real": partial(real, policy=given.policy)}
    with use_threads(given.threads):
        for name in given.parts:
            results[name] = {**about, "versions": versions(), **parts[name](given.rounds)}
            print(
                json.dumps({name: {k: v for k, v in results[name].items() if k != "versions"}}),
                flush=True,
            )
            if given.results:
                write_json(given.results, results)


if __name__ == "__main__":
    main()
