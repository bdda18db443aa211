"""Measure what claims and rewards of tokens add to a training step of a language model.

    python benchmarks/step_time.py --policy models/smollm2 --pairs 1 \\
        --results benchmarks/results/step_time.json

RLFH by GRPO with returns-to-go, compared with plain TRL, on real facts, with the local verifier and
32 rollouts of at most 64 tokens. Every other step extracts and judges claims, rewards tokens and
records rows. The others get a constant reward and no record. The learning rate is 0, so the policy
does not change. The peak memory of this process is measured with gradient checkpointing (the
default) and without.
"""

import argparse
import json
import os
import resource
import tempfile
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from tiny_speed import WARM, EveryOther, durations

from workbench.methods import METHODS
from workbench.methods.bench import bench
from workbench.methods.method import scaled, training_questions
from workbench.runs.folder import versions
from workbench.training.loading import load_trainee
from workbench.training.recorder import RolloutRecorder
from workbench.util.jsonl import write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.llm_judge import LocalJudge

RLFH = METHODS["rlfh"]
SETTINGS = (
    "rlfh.trainer=grpo",
    "rlfh.kinds=long_form",
    "rlfh.grpo.temperature=0.7",
    "rlfh.grpo.micro_batch=16",
    "rlfh.grpo.lora_r=16",
    "rlfh.grpo.prompts_per_step=8",
    "rlfh.grpo.group_size=4",
    "rlfh.grpo.max_new_tokens=64",
)


def steps(policy: Path, count: int, *settings: str) -> tuple[list[float], int]:
    """Return the seconds of `count` steps after `WARM` warm-up steps, and the peak memory so far in
    MB.
    """
    place = bench("small").with_policy(str(policy)).with_judge(LocalJudge())
    config = RLFH.configure("small", [*SETTINGS, *settings])
    number = WARM + count + 1  # without the last step, which saves
    grpo = scaled(config.grpo, learning_rate=0.0, steps=number, save_every=10 * number)
    questions = training_questions(config.prompts, place, answered=False)
    trainee = load_trainee(place.path(place.policy), **vars(grpo.lora), seed=0)
    grade = RLFH.grader(config, place.checks)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        with RolloutRecorder(
            out, RLFH.name, grade, steps=grpo.steps, done=0, max_failed=0.2
        ) as recorder:
            trainer = EveryOther(grpo, trainee, recorder, questions, out, seed=0)
            trainer.train()
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return durations(trainer.started)[WARM : WARM + count], peak


def measured(policy: Path, pairs: int) -> dict[str, Any]:
    # first with gradient checkpointing, the default: the peak of a process never falls
    _, recomputing = steps(policy, 0)
    seconds, keeping = steps(policy, 2 * pairs, "rlfh.grpo.gradient_checkpointing=no")
    graded, constant = seconds[::2], seconds[1::2]
    ratios = [one / other for one, other in zip(graded, constant, strict=True)]
    return {
        "policy": policy.name,
        "rollouts": 32,
        "tokens": 64,
        "pairs": len(ratios),
        "claims_s": median(graded),
        "constant_s": median(constant),
        "ratio": median(ratios),
        "ratio_from_to": [min(ratios), max(ratios)],
        "peak_mb": keeping,
        "peak_mb_recomputing": recomputing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", type=Path, required=True, help="folder of a language model")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of steps")
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {"date": date.today().isoformat(), "cores": os.cpu_count(), "threads": given.threads}
    with use_threads(given.threads):
        found = {**about, "versions": versions(), **measured(given.policy, given.pairs)}
    print(json.dumps(found, indent=1))
    if given.results:
        write_json(given.results, found)


if __name__ == "__main__":
    main()
