"""A method's config → the phases of its training, each with how many rows of how many tokens are
in memory at once.

A part of a config is known by its class, so that a method that somebody adds is planned like the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from workbench.config import parts
from workbench.generate.hf import ROWS, ROWS_OF_SMALL, SMALL
from workbench.plan.memory import AMP, BF16, CRITIC_COPIES, TRL_COPIES, Precision
from workbench.plan.shapes import Shape
from workbench.recipes.method import Method
from workbench.train import dpo, grpo, ppo, reward_model, sft
from workbench.train.dpo import DPO
from workbench.train.grpo import GRPO
from workbench.train.ppo import PPO
from workbench.train.reward_model import RewardModel
from workbench.train.sft import SFT
from workbench.types import WorkbenchError

MOST = 10**12  # of any number in a config: above it nothing is planned
CHECKS: dict[type, Callable[[Any], None]] = {
    GRPO: grpo.check,
    PPO: ppo.check,
    SFT: sft.check,
    DPO: dpo.check,
    RewardModel: reward_model.check,
}


@dataclass(frozen=True)
class Learning:
    """The backward passes of one trained part.

    Attributes:
        micro: rows of one pass, out of `batch`; of a pair both answers are one row each, so that
        `sides` is 2.
        length: tokens of a row; `scored` are those that have logits, 0 where none are computed.
        forward: passes without gradients beside each one with them.
        rows: rows that a step learns from, each `epochs` times.
        again: whether a layer's activations are computed a second time (gradient checkpointing),
        not kept.
        four_bits: whether the base's matrices are held in 4 bits.
    """

    part: str
    trainer: str
    how: Precision
    lora_r: int
    micro: int
    batch: int
    length: int
    scored: int
    copies: int
    rows: int
    steps: int | None
    epochs: int = 1
    forward: int = 0
    sides: int = 1
    critic: bool = False
    again: bool = False
    four_bits: bool = False

    @property
    def graded(self) -> bool:
        """Whether responses are paid while it is under way, so that whatever pays them is in
        memory.
        """
        return self.trainer in ("GRPO", "PPO")


@dataclass(frozen=True)
class Sampled:
    """Responses that are computed at once: `rows` to `prompts` different prompts; `part` is ""
    for an evaluation.
    """

    part: str
    rows: int
    prompts: int
    prompt: int
    new: int
    group: int = 1
    responses: int = 0  # of a step, where a training samples them

    @property
    def length(self) -> int:
        return self.prompt + self.new


def used_parts(method: Method, config: Any) -> dict[str, Any]:
    """The parts of a config, and their parts, that it is trained by, by their paths."""
    idle = method.training(config).idle
    return {
        path: part
        for path, part in _walk(config)
        if not any(f"{path}.".startswith(f"{name}.") for name in idle)
    }


def _walk(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in parts(config).items():
        yield f"{prefix}{name}", part
        yield from _walk(part, f"{prefix}{name}.")


def check_parts(used: dict[str, Any]) -> None:
    """Raise a WorkbenchError for settings that cannot work or that nobody can mean."""
    for path, part in used.items():
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, int) and value > MOST:
                raise WorkbenchError(
                    f"{path}.{field.name} is above {MOST:,}: nothing is planned of that size, set"
                    " less"
                )
        if isinstance(part, GRPO) and part.vllm != "none":
            raise WorkbenchError(
                f"{path}.vllm is {part.vllm}: what vLLM takes is not planned; leave it at none for"
                " a plan"
            )
        if check := CHECKS.get(type(part)):
            check(part)


def learnings(used: dict[str, Any], prompt: int, positions: int) -> list[Learning]:
    """What is learnt by, in the config's order; `prompt` is how many tokens a prompt is taken to
    have.
    """
    return [
        found for path, part in used.items() if (found := _learning(path, part, prompt, positions))
    ]


def _learning(path: str, part: Any, prompt: int, positions: int) -> Learning | None:
    if isinstance(part, GRPO):
        responses, generated, micro = grpo.batches(part)
        # then the first log-probabilities are read apart
        apart = part.iterations > 1 or generated < responses
        return Learning(
            path,
            "GRPO",
            AMP,
            part.lora.lora_r,
            micro,
            generated,
            prompt + part.sampling.max_new_tokens,
            part.sampling.max_new_tokens,
            TRL_COPIES,
            responses,
            part.steps,
            part.iterations,
            int(bool(part.kl.beta)) + int(apart),
            again=part.lora.gradient_checkpointing,
            four_bits=part.lora.load_in_4bit,
        )
    if isinstance(part, PPO):
        responses, update, micro = ppo.sizes(part)
        return Learning(
            path,
            "PPO",
            BF16,
            part.lora.lora_r,
            micro,
            update,
            prompt + part.sampling.max_new_tokens,
            part.sampling.max_new_tokens,
            CRITIC_COPIES,
            responses,
            part.steps,
            part.epochs,
            forward=2,
            critic=True,
            again=part.lora.gradient_checkpointing,
            four_bits=part.lora.load_in_4bit,
        )
    if isinstance(part, SFT | DPO | RewardModel):
        length, pairs, scores = (
            min(part.passes.max_length, positions),
            isinstance(part, DPO),
            isinstance(part, RewardModel),
        )
        return Learning(
            path,
            type(part).__name__,
            BF16 if scores else AMP,
            part.lora.lora_r,
            part.passes.micro_batch or part.passes.batch,
            part.passes.batch,
            length,
            0 if scores else length,
            TRL_COPIES,
            part.passes.batch,
            part.passes.steps,
            forward=int(pairs),
            sides=1 + pairs,
            critic=scores,
            again=part.lora.gradient_checkpointing,
            four_bits=part.lora.load_in_4bit,
        )
    return None


def samplings(used: dict[str, Any], shape: Shape, prompt: int, evaluated: int) -> list[Sampled]:
    """The rollouts of each training by reinforcement, and the longest answers that an evaluation
    or a stage samples.
    """
    found = []
    for path, part in used.items():
        if isinstance(part, GRPO):
            responses, generated, _ = grpo.batches(part)
            distinct = max(1, generated // part.group_size)
            found.append(
                Sampled(
                    path,
                    generated,
                    distinct,
                    prompt,
                    part.sampling.max_new_tokens,
                    part.group_size,
                    responses,
                )
            )
        elif isinstance(part, PPO):
            responses = part.prompts_per_step * part.group_size
            at_once = min(responses, at_most(shape))
            distinct = min(at_once, part.prompts_per_step)
            found.append(
                Sampled(
                    path,
                    at_once,
                    distinct,
                    prompt,
                    part.sampling.max_new_tokens,
                    part.group_size,
                    responses,
                )
            )
    longest = max([evaluated, *(getattr(part, "max_new_tokens", 0) for part in used.values())])
    return [*found, Sampled("", at_most(shape), at_most(shape), prompt, longest)]


def at_most(shape: Shape) -> int:
    """How many answers the engine computes at once, where nobody says."""
    return ROWS_OF_SMALL if shape.parameters < SMALL else ROWS
