"""Define the method RLFH: its checks, its reward's parts, its training and tiny-bench settings.

Training is PPO or GRPO. A setting names the annotator that labels the claims.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from workbench.methods.bench import Bench, check_policy
from workbench.methods.method import AT_ONCE, Method, Training, scaled, training_questions
from workbench.methods.rlfh.annotators import annotated, by_verifier, flipped
from workbench.methods.rlfh.config import RLFH
from workbench.methods.rlfh.reward import reward
from workbench.methods.rlfh.self_judging import by_recall, by_yes_or_no
from workbench.training.grpo import grpo_stage
from workbench.training.ppo import ppo_stage
from workbench.training.stage import Stage
from workbench.types import Checks, Verify, WorkbenchError
from workbench.verdicts.local import warn_of_training
from workbench.verifier import find_verifier, load_verifier
from workbench.world import load_world

PARTS = {
    "truth": ("truthfulness", "sum over the claims of α · f(verdict) · |g(informativeness)|"),
    "info": (
        "informativeness",
        "sum over the sentences of β · ln(1 + max(ε, Σ g(informativeness)))",
    ),
}
# *(ours)*, for 1M parameters on two CPU cores. The learning rates were chosen on the validation
# split: `rlfh_rates.toml` and `comparison_rates.toml` in benchmarks/findings. Rewards reach about
# 10 within few updates. A critic whose values may move by at most .2 per update would be too
# slow. λ is 1, because with a smaller λ only the critic passes rewards of a long biography back
# to its first words.
SHORT = {"steps": 30, "max_new_tokens": 64, **AT_ONCE, "save_every": 5}
TINY = scaled(
    RLFH(),
    prompts={"kinds": "biography", "eval_kinds": "biography"},
    ppo={
        **SHORT,
        "learning_rate": 5e-4,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
    },
    grpo={**SHORT, "learning_rate": 1.5e-3, "schedule": "linear", "warmup": 0.0, "beta": 0.0},
)


def checks(config: RLFH) -> tuple[str, ...]:
    """Return the name of the check that the reward reads, in a tuple: "fact" or "single_pass".

    "single_pass" extracts and verifies claims in one call.
    """
    return ("fact",) if config.mode == "pipeline" else ("single_pass",)


def training(config: RLFH) -> Training:
    return Training(
        config.trainer,
        idle={"ppo", "grpo"} - {config.trainer},
        resident_models=int(config.annotator in ("self", "recall")),
    )


def stages(config: RLFH, bench: Bench) -> Sequence[Stage]:
    """Return the training stages of a run: one stage, PPO or GRPO.

    Raises:
        WorkbenchError: invalid settings, no questions, an annotator that is not available, or a
            judge that cannot say which claims are about another subject (`off_subject="wrong"`).
    """
    if config.off_subject == "wrong" and bench.hash != load_world().hash:
        raise WorkbenchError(
            "rlfh.off_subject is wrong, but only the judge of the closed world says which claims"
            f" are about another subject, and bench '{bench.name}' has another judge: leave"
            " rlfh.off_subject out, or train with --bench tiny"
        )
    # questions for long answers have no gold answers
    questions = training_questions(config.prompts, bench, answered=False)
    grade = METHOD.grader(config, bench.checks)
    # not by default, because with mode=single_pass there is no check "fact" to replace
    if config.flips or config.annotator != "bench":
        grade = METHOD.grader(config, _with_annotator(config, bench))
    stage: Callable[..., Stage] = ppo_stage if config.trainer == "ppo" else grpo_stage
    return [stage(getattr(config, config.trainer), lambda job: (questions, grade), METHOD.name)]


def _with_annotator(config: RLFH, bench: Bench) -> Checks:
    """Return the bench's checks, with "fact" verdicts by the annotator that the config names.

    A share of the annotator's labels, the setting `flips`, is inverted.

    Raises:
        WorkbenchError: the mode is not "pipeline", or the annotator is not available.
    """
    if config.mode != "pipeline":
        name = "flips" if config.annotator == "bench" else "annotator"
        raise WorkbenchError(
            f"rlfh.{name} is {getattr(config, name)}, which has an effect only with"
            f" rlfh.mode=pipeline: set this mode, or leave rlfh.{name} out"
        )
    fact = bench.checks.verify["fact"]
    if config.annotator != "bench":
        fact = annotated(fact, _annotator(config, bench))
    return replace(
        bench.checks, verify={**bench.checks.verify, "fact": flipped(fact, config.flips)}
    )


def _annotator(config: RLFH, bench: Bench) -> Verify:
    """Return the check of the annotator that the config names. Its first batch loads the model."""
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
    """Return a check that is created by calling `make` when the first batch is checked.

    `make` may load a model. Torch's random state is restored after the call.
    """

    @cache
    def check() -> Verify:
        import torch

        # a resumed run loads the model at another step, and must end with the same weights
        with torch.random.fork_rng():
            return make()

    return lambda batch: check()(batch)


METHOD: Method = Method(
    "rlfh",
    "RLFH",
    RLFH,
    reward,
    checks,
    stages=stages,
    parts=PARTS,
    scales={"tiny": TINY},
    training=training,
)
