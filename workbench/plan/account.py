"""A phase's memory item by item, whether it fits, and which setting makes it fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from workbench.plan import memory
from workbench.plan.gpus import GIB, GPU
from workbench.plan.memory import BF16, FP32, Precision
from workbench.plan.phases import Learning, Sampled
from workbench.plan.shapes import Shape

# assumed: libraries and driver, and what the allocator cannot use, as a share of the rest
CONTEXT, FRAGMENTS = GIB, 0.05
# assumed of a judge on the same GPU: requests at once, and how long they are
JUDGE_ROWS, JUDGE_TOKENS = 8, 4096
SHORTEST = 16  # tokens below which to shorten responses is no remedy


@dataclass(frozen=True)
class Machine:
    """What a training runs on, and what else lies in its memory: `held` models of the policy's
    size, a `judge`.

    `rank` is that of the held models' adapters where they pay what a stage samples, and no
    training by reinforcement is there.
    """

    shape: Shape
    on_cpu: bool = False
    held: int = 0
    judge: Shape | None = None
    rank: int | None = None

    def precision(self, how: Precision) -> Precision:
        return FP32 if self.on_cpu else how

    @cached_property
    def size(self) -> int:
        """Bytes of a weight as the policy is loaded."""
        return self.precision(BF16).base

    def beside(self, held: int = 0, rank: int = 0) -> dict[str, int]:
        """The weights, and what lies beside them: other models of that size, with adapters of
        that rank, and a judge.
        """
        weights = self.shape.parameters * self.size
        others = held * (weights + 4 * self.shape.lora(rank))
        return {"weights": weights, "held_models": others, "judge": self._judge()}

    def _judge(self) -> int:
        if self.judge is None:
            return 0
        return self.judge.parameters * self.size + memory.cache(
            self.judge, self.size, JUDGE_ROWS, JUDGE_TOKENS
        )

    def trained(self, one: Learning) -> int:
        return self.shape.lora(one.lora_r) + (self.shape.hidden + 1 if one.critic else 0)

    def state(self, one: Learning) -> dict[str, int]:
        """What a training has in memory all the time."""
        count, how = self.trained(one), self.precision(one.how)
        beside = self.beside(self.held if one.graded else 0, one.lora_r)
        if one.four_bits:
            beside["weights"] = memory.four_bits(self.shape)
        items = {
            "adapter": memory.adapter(count, how),
            "gradients": 4 * count,
            "optimizer": memory.ADAM * count,
        }
        return {**beside, **items}

    def learning(self, one: Learning) -> dict[str, int]:
        rows, how = one.micro * one.sides, self.precision(one.how)
        logits = memory.logits(self.shape, how, rows, one.scored, one.copies)
        sizes = (self.shape, how, one.lora_r, rows, one.length)
        kept = (
            memory.checkpointed(*sizes, freed=logits) if one.again else memory.activations(*sizes)
        )
        return reserved({**self.state(one), "activations": kept, "logits": logits})

    def sampling(self, one: Sampled, trainer: Learning | None) -> dict[str, int]:
        """Of rollouts beside their training, or of an evaluation or a stage, for which the
        policy is loaded with no training, and alone but for the models that pay such samples."""
        cache = memory.cache(self.shape, self.size, one.rows, one.length)
        begun = memory.cache(self.shape, self.size, one.rows, one.prompt)
        reading = begun + memory.prefill(self.shape, self.size, one.prompts, one.prompt)
        more = max(0, reading - cache) + memory.drawing(self.shape, one.rows)
        if trainer is not None:
            there = self.state(trainer)
        else:
            there = self.beside() if self.rank is None else self.beside(self.held, self.rank)
        return reserved({**there, "kv_cache": cache, "reading_and_drawing": more})


def reserved(items: dict[str, int]) -> dict[str, int]:
    return {**items, "reserve": CONTEXT + int(FRAGMENTS * sum(items.values()))}


def total(items: dict[str, int]) -> int:
    return sum(items.values())


def largest(count: int, fits: Callable[[int], bool], multiple: int = 1) -> int:
    """The largest divisor of `count` that is a multiple of `multiple` and fits; 0 where none
    does.
    """
    low, high = 0, count // multiple + 1
    while high - low > 1:  # what fits goes from 1 to `low`
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * multiple) else (low, middle)
    return next((found for n in range(low, 0, -1) if count % (found := n * multiple) == 0), 0)


def most(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `high` that fits; 0 where none does."""
    low, high = 0, high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def micro_that_fits(machine: Machine, one: Learning, gpu: GPU) -> int:
    """The largest micro-batch that fits and divides the batch."""
    return largest(
        one.batch,
        lambda micro: total(machine.learning(replace(one, micro=micro))) <= gpu.memory * GIB,
    )


def learning_remedy(machine: Machine, one: Learning, gpu: GPU, method: str) -> str:
    """What to set so that the backward pass fits: activations computed again, fewer rows of it,
    or shorter ones; else another model or GPU."""
    part = f"{method}.{one.part}"
    if not one.again:
        more, one = f"--set {part}.gradient_checkpointing=true", replace(one, again=True)
        if total(machine.learning(one)) <= gpu.memory * GIB:
            return more
        less = learning_remedy(machine, one, gpu, method)
        return f"{more} {less}" if less.startswith("--set") else less
    if micro := micro_that_fits(machine, one, gpu):
        return f"--set {part}.micro_batch={micro}"

    def fits(tokens: int) -> bool:
        cut = one.length - tokens
        shorter = replace(one, micro=1, length=tokens, scored=max(0, one.scored - cut))
        return total(machine.learning(shorter)) <= gpu.memory * GIB

    if one.graded:
        prompt = one.length - one.scored
        new = most(one.scored, lambda tokens: fits(prompt + tokens))
        return _shorter(part, "max_new_tokens", new, one, machine, gpu)
    return _shorter(part, "max_length", most(one.length, fits), one, machine, gpu)


def _shorter(part: str, field: str, tokens: int, one: Learning, machine: Machine, gpu: GPU) -> str:
    if tokens < SHORTEST:
        return "a smaller --policy, or a --gpu with more memory"
    micro = f"--set {part}.micro_batch=1 " if one.micro > 1 else ""
    return f"{micro}--set {part}.{field}={tokens}"


def sampling_remedy(
    machine: Machine, one: Sampled, trainer: Learning | None, gpu: GPU, method: str
) -> str:
    """What to set so that the answers fit: fewer at once, or shorter ones."""

    def fits(rows: int) -> bool:
        prompts = max(1, rows // one.group)
        return (
            total(machine.sampling(replace(one, rows=rows, prompts=prompts), trainer))
            <= gpu.memory * GIB
        )

    if trainer is None:
        return (
            "a smaller --policy, or a --gpu with more memory (no setting changes how many an"
            " evaluation computes)"
        )
    part = f"{method}.{one.part}"
    if trainer.trainer == "GRPO" and (rows := largest(one.responses, fits, one.group)):
        micro = (
            ""
            if rows % trainer.micro == 0
            else f" --set {part}.micro_batch={largest(rows, lambda n: n <= trainer.micro)}"
        )
        return f"--set {part}.generation_batch={rows}{micro}"
    if trainer.trainer == "PPO" and (rows := largest(one.responses, fits, one.group)):
        return f"--set {part}.prompts_per_step={rows // one.group}"
    if one.group > 1 and (group := most(one.group, fits)):
        return (
            f"--set {part}.group_size={group}, and generation_batch and micro_batch that divide"
            " what a step then samples"
        )
    return "a smaller --policy, or a --gpu with more memory"
