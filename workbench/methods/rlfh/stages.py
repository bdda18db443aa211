"""The training of RLFH: PPO or GRPO from the bench's policy, with the chosen annotator's labels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from workbench.methods.bench import Bench, check_policy
from workbench.methods.method import Method, training_questions
from workbench.methods.rlfh.annotators import annotated, by_verifier, flipped
from workbench.methods.rlfh.config import RLFH
from workbench.methods.rlfh.self_judging import by_recall, by_yes_or_no
from workbench.training.grpo import grpo_stage
from workbench.training.ppo import ppo_stage
from workbench.training.stage import Stage
from workbench.types import Checks, Verify, WorkbenchError
from workbench.verdicts.local import warn_of_training
from workbench.verifier import find_verifier, load_verifier
from workbench.world import load_world


def stages(config: RLFH, bench: Bench, method: Method) -> Sequence[Stage]:
    """Return the one stage of a training: PPO or GRPO.

    Raises:
        WorkbenchError: invalid settings, no questions, or an annotator that is not available.
    """
    # open questions have no gold answers
    questions = training_questions(config.prompts, bench, answered=False)
    grade = method.grader(config, bench.checks)
    # only then: with mode=single_pass there is no separate check of facts to replace
    if config.flips or config.annotator != "bench":
        grade = method.grader(config, _with_annotator(config, bench))
    stage: Callable[..., Stage] = ppo_stage if config.trainer == "ppo" else grpo_stage
    return [stage(getattr(config, config.trainer), lambda job: (questions, grade), method.name)]


def _with_annotator(config: RLFH, bench: Bench) -> Checks:
    """Return the bench's checks with another annotator's labels, a share of them inverted."""
    if config.mode != "pipeline":
        name = "flips" if config.annotator == "bench" else "annotator"
        raise WorkbenchError(
            f"rlfh.{name} is {getattr(config, name)}: it has an effect only with"
            f" rlfh.mode=pipeline: set that, or leave rlfh.{name} out"
        )
    fact = bench.checks.verify["fact"]
    if config.annotator != "bench":
        fact = annotated(fact, _annotator(config, bench))
    return replace(
        bench.checks, verify={**bench.checks.verify, "fact": flipped(fact, config.flips)}
    )


def _annotator(config: RLFH, bench: Bench) -> Verify:
    """Return the annotator, without loading its model: planning a run loads no model."""
    world = load_world()
    if bench.hash != world.hash:
        raise WorkbenchError(
            f"rlfh.annotator is {config.annotator}: it can only judge claims about the closed"
            f" world, not those of bench '{bench.name}': leave rlfh.annotator out, and name a judge"
            " with --judge URL --judge-model NAME"
        )
    if config.annotator == "local":
        find_verifier()  # raises if it is not installed
        warn_of_training()
        return loaded_at_first_batch(lambda: by_verifier(load_verifier(), world))
    check_policy(bench.policy, bench.path(bench.policy))
    by_policy = by_yes_or_no if config.annotator == "self" else by_recall
    return loaded_at_first_batch(lambda: by_policy(bench.load(bench.policy), world))


def loaded_at_first_batch(make: Callable[[], Verify]) -> Verify:
    """Return a check that `make` creates at the first batch.

    Its creation does not change the random state: a resumed run creates it at another step and must
    end with the same weights.
    """

    @cache
    def check() -> Verify:
        import torch

        with torch.random.fork_rng():
            return make()

    return lambda batch: check()(batch)
