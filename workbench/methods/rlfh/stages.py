"""RLFH trains with PPO or GRPO from the bench's policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from workbench.methods.bench import Bench, check_policy
from workbench.methods.method import Method, Training, training_questions
from workbench.methods.rlfh.annotators import (
    annotated,
    by_recall,
    by_verifier,
    by_yes_or_no,
    flipped,
)
from workbench.methods.rlfh.config import PARTS, RLFH, TINY, checks, reward
from workbench.training.grpo import grpo_stage
from workbench.training.ppo import ppo_stage
from workbench.training.stage import Stage
from workbench.types import Checks, Verify, WorkbenchError
from workbench.verifier import find_verifier, load_verifier
from workbench.world import load_world


def stages(config: RLFH, bench: Bench) -> Sequence[Stage]:
    """PPO or GRPO from the bench's policy; open questions have no gold answers."""
    questions = training_questions(config.prompts, bench, answered=False)
    grade = METHOD.grader(config, bench.checks)
    if config.flips or config.annotator != "bench":
        grade = METHOD.grader(config, _annotated(config, bench))
    if config.trainer == "ppo":
        return [ppo_stage(config.ppo, lambda job: (questions, grade), METHOD.name)]
    return [grpo_stage(config.grpo, lambda job: (questions, grade), METHOD.name)]


def _annotated(config: RLFH, bench: Bench) -> Checks:
    """The bench's checks with another annotator's labels, of which some are turned around: for
    training alone.
    """
    told = (
        f"rlfh.flips is {config.flips}"
        if config.annotator == "bench"
        else f"rlfh.annotator is {config.annotator}"
    )
    if config.mode != "pipeline":
        raise WorkbenchError(
            f"{told}: it replaces the verdicts of mode=pipeline alone: set rlfh.mode=pipeline"
        )
    fact = bench.checks.verify["fact"]
    if config.annotator != "bench":
        fact = annotated(fact, _annotator(config, bench))
    return replace(
        bench.checks, verify={**bench.checks.verify, "fact": flipped(fact, config.flips)}
    )


def _annotator(config: RLFH, bench: Bench) -> Verify:
    """What is not there is told before any work, but loaded with the first batch: to plan a run
    loads no model.
    """
    world = load_world()
    if bench.hash != world.hash:
        raise WorkbenchError(
            f"rlfh.annotator is {config.annotator}: it knows claims about the closed world alone,"
            f" not those of bench '{bench.name}': leave it out, and give that bench its judge with"
            " --judge URL --judge-model NAME"
        )
    if config.annotator == "local":
        find_verifier()
        return later(lambda: by_verifier(load_verifier(), world))
    check_policy(bench.policy, bench.path(bench.policy))
    by_policy = by_yes_or_no if config.annotator == "self" else by_recall
    return later(lambda: by_policy(bench.load(bench.policy), world))


def later(make: Callable[[], Verify]) -> Verify:
    """A check that is made with its first batch, once. Random numbers go on as if it had been
    there before: a resumed run makes it elsewhere on its way, and ends the same."""

    @cache
    def made() -> Verify:
        import torch

        with torch.random.fork_rng():
            return make()

    return lambda batch: made()(batch)


METHOD = Method(
    "rlfh",
    "RLFH",
    RLFH,
    reward,
    checks,
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=lambda config: Training(
        config.trainer,
        idle={"ppo", "grpo"} - {config.trainer},
        resident_models=int(config.annotator in ("self", "recall")),
    ),
)
