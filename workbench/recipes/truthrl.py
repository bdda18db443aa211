"""TruthRL: a ternary outcome reward teaches a policy to abstain where it does not know (arXiv 2509.25760).

The paper: with GRPO, paying +1 for a right answer, 0 for "I don't know" and −1 for a wrong answer lowers hallucination
and raises truthfulness (accuracy − hallucination) against the binary reward, which pays −1 for everything that is not
right and so trains abstention away. Average over four data sets, binary to ternary: hallucination 47.7 → 18.8 %,
truthfulness 4.5 → 25.6 %.

Our deviations: a LoRA adapter instead of all parameters, and with it a learning rate of 2e-5 instead of 1e-6, at which an
adapter, whose second matrix starts at zero, would hardly leave the starting policy; the outcome is found by rules
(abstention first, then the gold answers) instead of a judge; the group size, which the paper does not state, is 8. The
knowledge- and reasoning-enhanced rewards are off by default, as the paper finds the plain ternary one best.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.recipes import assemble
from workbench.train.grpo import GRPO, train_grpo
from workbench.types import Grade, Question, RewardFn, WorkbenchError

if TYPE_CHECKING:
    from workbench.bench import Bench
    from workbench.checks import Checks

METHOD = "truthrl"
CHECKS = ("outcome",)


@dataclass(frozen=True)
class TruthRL(GRPO):
    """The paper's settings (appendix, "Training details"); a bench replaces those that belong to its scale."""

    reward: Literal["ternary", "binary"] = "ternary"  # §3.2
    correct: float = 1.0
    abstain: float = 0.0  # of the ternary reward; the binary one pays an abstention like a wrong answer
    wrong: float = -1.0
    knowledge: bool = False  # §3.2: abstentions pay +1 on questions out of knowledge; needs "out_of_knowledge" verdicts
    reasoning: Literal["none", "multiplicative", "additive", "conditional"] = "none"  # §4.6, table 8
    reasoning_weight: float = 0.5  # λ of the additive one (appendix)
    learning_rate: float = 2e-5  # (ours) for the adapter; the paper, training all parameters: "learning rate of 1e-6"
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    prompts_per_step: int = 64  # "batch size of 64"
    group_size: int = 8  # (ours)
    beta: float = 0.001  # "KL … coefficient β"
    clip: float = 0.2  # "clip ratio ε"
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 2048  # in training; an evaluation leaves room to think, as long as the bench says
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "grpo"  # §3.2: mean over a response's tokens, then over responses
    steps: int = 100  # (ours)
    lora_r: int = 64  # (ours)
    lora_alpha: int = 128  # (ours)
    micro_batch: int | None = 4  # (ours) fits one 80 GB GPU
    generation_batch: int | None = 128  # (ours)
    kinds: str = ""  # question kinds to train on, separated by commas; empty for all
    eval_split: Literal["validation", "test", "ood"] = "validation"
    eval_samples: int = 4  # sampled responses a question, beside the greedy one


def reward(config: TruthRL) -> RewardFn:
    """Feedback with the outcome (and the verdicts that the enhanced rewards look at) -> reward, paid at the response's end."""
    from workbench.config import check_values
    from workbench.reward import additive, binary, conditional, knowledge, multiplicative, reasoning, ternary

    check_values(config)
    base = binary(config.correct, config.wrong)
    if config.reward == "ternary":
        base = ternary(config.correct, config.abstain, config.wrong)
    if config.knowledge:
        base = knowledge(base, other=config.wrong)
    if config.reasoning == "none":
        return base
    ways = {"multiplicative": multiplicative, "additive": additive(config.reasoning_weight), "conditional": conditional}
    return reasoning(base, ways[config.reasoning])


def checks(config: TruthRL) -> tuple[str, ...]:
    """The outcome, and what the enhanced rewards look at."""
    boundary = ("out_of_knowledge",) if config.knowledge else ()
    return (*CHECKS, *boundary, *(("reasoning",) if config.reasoning != "none" else ()))


def grader(config: TruthRL, bench: Bench | Checks) -> Grade:
    """Responses -> feedback with the outcome verdict and the chosen reward under "truthrl"."""
    from workbench.checks import Checks

    rewards = {METHOD: reward(config)}
    if checks(config) == CHECKS and not isinstance(bench, Checks):
        return bench.grade(rewards)
    thought = (lambda claim: claim.section == "think") if config.reasoning != "none" else None  # what the reasoning claims
    return assemble(bench, rewards, checks(config), thought)


def questions(config: TruthRL, bench: Bench) -> list[Question]:
    """What is trained on: the bench's "rl" questions with gold answers, of the kinds that `config` names."""
    kinds = [kind.strip() for kind in config.kinds.split(",") if kind.strip()]
    found = [question for question in bench.questions("rl", kinds or None) if question.answers]
    if missing := set(kinds) - {question.kind for question in found}:
        known = sorted({question.kind for question in bench.questions("rl") if question.answers})
        raise WorkbenchError(
            f"bench '{bench.name}' has no training questions with answers of kinds {', '.join(sorted(missing))}: "
            f"choose among {', '.join(known)}"
        )
    if not found:
        raise WorkbenchError(f"bench '{bench.name}' has no training questions with answers: give others")
    return found


def train(
    config: TruthRL, bench: Bench, *, out: Path, seed: int, policy: str | None = None, unsloth: bool | None = None
) -> str:
    """Train the bench's policy in the run folder `out`; returns "done" or "interrupted"."""
    start = bench.path(policy or bench.policy)
    asked, grade = questions(config, bench), grader(config, bench)
    return train_grpo(config, asked, grade, start, out, method=METHOD, seed=seed, unsloth=unsloth)
