"""RLFH: on-policy reinforcement learning from the truth and the helpfulness of every claim
(arXiv 2406.12221).

The paper: an AI judge splits a response into atomic statements, verifies each against retrieved
passages and rates how informative it is; the verdicts are traced back to tokens and PPO
maximises their sum. FactScore of Vicuna-7B on HotpotQA .569 → .655, on SQuADv2 .669 → .683, on
biographies .347 → .474; paying at statements (.655) does better than at sentences (.645) or at
the end of the paragraph (.639).

Our deviations: claims in the thinking are not paid; a claim that cannot be found in the text is
listed and paid at its sentence's end, else at the response's end; informativeness is rated in
one call for all claims, as section 3.1.3 has it. An adapter is trained instead of all
parameters, with larger learning rates; the critic is a linear head on the policy's hidden
states. GRPO in PPO's place is ours; so is `off_subject`, which closes the hack that the paper's
reward invites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from workbench.methods.bench import Bench, check_policy
from workbench.methods.method import AT_ONCE, Method, Prompts, Training, scaled, training_questions
from workbench.methods.rlfh.annotators import (
    annotated,
    by_recall,
    by_verifier,
    by_yes_or_no,
    flipped,
)
from workbench.methods.rlfh.reward import LAUNCH_SCRIPT_F, PAPER_F, rlfh, warn_of_paid_mistakes
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import GRPO
from workbench.training.ppo import PPO, ppo_stage
from workbench.training.settings import KL, Optim, Sampling
from workbench.training.stage import Stage
from workbench.types import Checks, RewardFn, Verify, WorkbenchError
from workbench.util.config import check_values, setting
from workbench.verifier import find_verifier, load_verifier
from workbench.world import load_world

# The other values of both are their defaults: PPO's are those of the released code.
BY_PPO = PPO(
    critic_learning_rate=1e-3,  # (ours) for a linear head; the code, training a second model: 9e-6
    micro_batch=2,  # (ours) fits one 80 GB GPU, by `workbench plan`
    optim=Optim(learning_rate=1e-5),  # (ours) for the adapter; the code: 5e-7 for all parameters
)
BY_GRPO = GRPO(
    # (ours) what follows a token, against 0: a refusal's tokens stay where they are
    advantages="rtg",
    prompts_per_step=16,
    micro_batch=2,
    optim=Optim(learning_rate=2e-5),  # (ours) for the adapter
    sampling=Sampling(max_new_tokens=1024),
    kl=KL(beta=0.01),
)
ASKED = Prompts(system="")  # the question alone: an answer in prose, in no box


def _value(label: str, claim: str) -> float | None:
    """The setting for f of a label; None stands for the value of the reward map."""
    paper, script = PAPER_F[label], LAUNCH_SCRIPT_F[label]
    return setting(
        None,
        f"what {claim} is worth: {paper:g}; launch script {script:g}",
        range=(-3, 2, 0.05),
        unset=lambda config: label_values(config)[label],
    )


@dataclass(frozen=True)
class RLFH:
    """The reward's constants. `f_…` and `g_…` are the paper's f and g (table 9); α, β and ε are
    those of its code.
    """

    mode: Literal["pipeline", "single_pass"] = setting(
        "pipeline", "§3.1: extract, verify and rate, or all in one call"
    )
    granularity: Literal["statement", "sentence", "paragraph"] = setting(
        "statement",
        "where claims and sentences are paid: at the ends of claims, of their sentences, or of the"
        " answer",
    )  # §3.2, table 2
    # (ours)
    spread: bool = setting(
        False, "pay over the whole claim or sentence instead of at its last token"
    )
    reward_map: Literal["paper", "launch_script"] = setting(
        "paper",
        "f: the paper's table 9, or the released launch script's; the single values go before it",
    )
    f_correct: float | None = _value("correct", "a correct claim")
    f_hedged_correct: float | None = _value("hedged_correct", "a hedged correct claim")
    f_vague: float | None = _value("vague", "a vague claim")
    f_hedged_wrong: float | None = _value("hedged_wrong", "a hedged wrong claim")
    f_wrong: float | None = _value("wrong", "a wrong claim")
    g_5: float = setting(1.3, "factor of a claim that answers the question", range=(-1, 2, 0.05))
    g_4: float = setting(1.2, "factor of a crucial claim", range=(-1, 2, 0.05))
    g_3: float = setting(1.1, "factor of a relevant claim", range=(-1, 2, 0.05))
    g_2: float = setting(1.0, "factor of a supplementary claim", range=(-1, 2, 0.05))
    g_1: float = setting(-0.1, "factor of a claim that is repeated or useless", range=(-1, 2, 0.05))
    alpha: float = setting(1.0, "α: weight of the truthfulness of the claims", range=(0, 3, 0.05))
    beta: float = setting(
        1.0, "β: weight of the informativeness of the sentences", range=(0, 3, 0.05)
    )
    epsilon: float = setting(
        -0.9, "ε: least Σg of a sentence that the logarithm takes; above -1", range=(-0.99, 1, 0.01)
    )  # log(1 - .9) = -2.30
    # (code, off) 10
    clip: float | None = setting(
        None, "most that one token is paid, either way", range=(0.1, 20, 0.1), above=0
    )
    no_eos: float = setting(
        0.0, "paid by an answer that was cut off before its end token", range=(-3, 0, 0.1)
    )  # (code, off) -1
    min_coverage: float = setting(
        0.5,
        "share of a claim's words that must be found in the answer to pay it there",
        range=(0, 1, 0.05),
    )  # (ours)
    off_subject: Literal["useless", "wrong"] = setting(
        "useless",
        "a claim about another subject than the one asked for: rated as useless, or paid like a"
        " wrong one",
    )  # (ours, off)
    annotator: Literal["bench", "local", "self", "recall"] = setting(
        "bench",
        "whose verdicts on claims are trained on: the bench's, the local verifier's from pages, or"
        " the start policy's from memory, asked yes or no (self) or for the answer (recall)",
        trains=True,
    )  # table 3; informativeness stays the bench's (ours)
    flips: float = setting(
        0.0,
        "share of the annotator's verdicts that are turned around in training, as by a poorer one",
        least=0,
        most=1,
        trains=True,
    )  # (ours) for table 3
    trainer: Literal["ppo", "grpo"] = setting(
        "ppo", "what the policy is trained by; the paper: ppo", trains=True
    )
    prompts: Prompts = ASKED
    ppo: PPO = BY_PPO
    grpo: GRPO = BY_GRPO


def label_values(config: RLFH) -> dict[str, float]:
    """f: what each label is worth under `config`."""
    named = PAPER_F if config.reward_map == "paper" else LAUNCH_SCRIPT_F
    own = {name: getattr(config, f"f_{name}") for name in named}
    return {name: value if own[name] is None else float(own[name]) for name, value in named.items()}


def reward(config: RLFH) -> RewardFn:
    """Feedback with "fact" verdicts (five labels and informativeness) -> reward, events at
    claims and sentences.
    """
    check_values(config)
    if config.epsilon <= -1:
        raise WorkbenchError(
            f"rlfh.epsilon is {config.epsilon}: it must be above -1, or the logarithm has no value"
        )
    f, g = (
        label_values(config),
        {rating: getattr(config, f"g_{rating}") for rating in (1, 2, 3, 4, 5)},
    )
    warn_of_paid_mistakes(f, g, alpha=config.alpha, beta=config.beta, epsilon=config.epsilon)
    return rlfh(
        f=f,
        g=g,
        alpha=config.alpha,
        beta=config.beta,
        epsilon=config.epsilon,
        granularity=config.granularity,
        spread=config.spread,
        clip=config.clip,
        no_eos=config.no_eos,
        min_coverage=config.min_coverage,
        off_subject=config.off_subject,
    )


def checks(config: RLFH) -> tuple[str, ...]:
    """In single-pass mode the extraction gives the verdicts as well."""
    return ("fact",) if config.mode == "pipeline" else ("single_pass",)


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


PARTS = {
    "truth": ("truthfulness", "sum over the claims of α · f(verdict) · |g(informativeness)|"),
    "info": (
        "informativeness",
        "sum over the sentences of β · ln(1 + max(ε, Σ g(informativeness)))",
    ),
    "clip": ("clipping", "what is taken off where more than the bound was paid at one place"),
    "no_eos": ("no end token", "paid by an answer that was cut off before its end token"),
}
# *(ours)*, for 1M parameters on two CPU cores; chosen on the validation split, see
# benchmarks/README.md. Responses are paid up to about 10 in few updates: a critic whose values may
# go .2 from what they were would not get there, and with λ below 1 it is the critic that has to
# carry what a life will cost to its first word.
LONG = {
    "steps": 30,
    "max_new_tokens": 64,
    **AT_ONCE,
    "save_every": 5,
}
TINY = scaled(
    RLFH(),
    prompts={"kinds": "biography", "eval_kinds": "biography"},
    ppo={
        **LONG,
        "learning_rate": 2e-3,
        "critic_learning_rate": 3e-2,
        "minibatch": 32,
        "value_clip": 50.0,
        "lam": 1.0,
    },
    grpo={**LONG, "learning_rate": 3e-3, "schedule": "linear", "warmup": 0.0, "beta": 0.0},
)
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
