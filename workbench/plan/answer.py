"""`workbench plan`: a method, a bench and a model → what its training needs, and where it does
not fit, why and what to set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from workbench.bench import NAMES, SCALES
from workbench.plan.account import Machine, learning_remedy, micro_that_fits, sampling_remedy, total
from workbench.plan.gpus import CPU, GIB, GPU, GPUS, gpu_of
from workbench.plan.judging import judging
from workbench.plan.phases import (
    MOST,
    Learning,
    Sampled,
    check_parts,
    learnings,
    samplings,
    used_parts,
)
from workbench.plan.shapes import Shape, shape_of
from workbench.plan.speed import assumed, learning_seconds, sampling_seconds
from workbench.recipes import trained
from workbench.recipes.method import Method
from workbench.types import WorkbenchError

UNMEASURED = (
    "computed, never measured on a GPU: for the plain path of transformers and PEFT, an upper bound"
    " where Unsloth or a fused kernel of TRL's takes less; rows are taken to be as long as they"
    " may be"
)


def plan(
    method: str,
    bench: str = "paper",
    *,
    policy: str | None = None,
    gpu: str | None = None,
    overrides: Sequence[str] = (),
    prompt_tokens: int | None = None,
    judge: str | None = None,
    claims: int | None = None,
    questions: int | None = None,
) -> dict[str, Any]:
    """What a training of `method` on `bench` needs, phase by phase; nothing is loaded.

    Args:
        policy: a model's folder or public name; by default what the bench's trainings start from.
        gpu: one of `GPUS`, or "cpu" for this machine; None: which of them would do.
        overrides: settings "method.field=value".
        prompt_tokens: how long a prompt is taken to be; None: what the bench says.
        judge: a model's folder or public name that is served on the same GPU.
        claims: how many a response is taken to make; None: as many as its length lets expect.
        questions: how many there are to train on, for the stages that answer all of them; None:
        not known.

    Returns:
        `fits` is None where no GPU is named; `remedies` are what to change, a line for each
        phase that does not fit.

    Raises:
        WorkbenchError: no such method, bench, GPU or model, settings or numbers that cannot
        work, rows longer than the model
            reads.
    """
    chosen, box = trained(method), gpu_of(gpu) if gpu else None
    config, scale = _configured(chosen, bench, overrides), SCALES[bench]
    name, prompt, used = (
        policy or scale.policy,
        prompt_tokens or scale.prompt,
        used_parts(chosen, config),
    )
    shape, training = shape_of(name), chosen.training(config)
    check_parts(used)
    learnt = learnings(used, prompt, shape.positions)
    if gpu == CPU and (packed := [one.part for one in learnt if one.four_bits]):
        raise WorkbenchError(
            f"{method}.{packed[0]}.load_in_4bit is true, which needs a GPU: name one with --gpu, or"
            " leave it false"
        )
    rank = (
        None
        if any(one.graded for one in learnt)
        else max((one.lora_r for one in learnt), default=0)
    )
    machine = Machine(
        shape, gpu == CPU, training.resident_models, shape_of(judge) if judge else None, rank
    )
    sampled = samplings(used, shape, prompt, scale.longest)
    _check_positions(method, sampled, shape, name)
    found = _Plan(chosen, machine, {one.part: one for one in learnt}, sampled)
    last = found.learnt[training.trainer]
    return {
        "method": method,
        "bench": bench,
        "policy": name,
        "shape": asdict(shape),
        "parameters": shape.parameters,
        "lora_parameters": shape.lora(last.lora_r),
        "prompt_tokens": prompt,
        "judge": judge,
        "gpu": asdict(box) if box else None,
        **found.memory(box, last),
        **found.work(box, last),
        "judging": judging(chosen, config, used, claims, questions),
        "host_bytes": shape.parameters * machine.size,
        "note": _note(training.other_models),
    }


def _configured(method: Method, bench: str, overrides: Sequence[str]) -> Any:
    if bench not in NAMES:
        raise WorkbenchError(f"no bench '{bench}': choose one of {', '.join(NAMES)}")
    if method.stages is None:
        raise WorkbenchError(
            f"method '{method.name}' pays rewards but cannot be trained yet: choose another"
        )
    config = method.configure(bench, overrides)
    method.reward(config)  # refuses values that cannot work
    return config


def _note(named: Sequence[str]) -> str:
    left = (
        f"; {', '.join(named)}, which the reward has in memory besides, is not counted"
        if named
        else ""
    )
    return f"{UNMEASURED}{left}"


def _check_positions(method: str, sampled: Sequence[Sampled], shape: Shape, policy: str) -> None:
    for one in sampled:
        if one.length > shape.positions:
            part = (
                f"{method}.{one.part}.max_new_tokens"
                if one.part
                else "max_new_tokens of what is sampled"
            )
            if (room := shape.positions - one.prompt) < 1:
                raise WorkbenchError(
                    f"a prompt of {one.prompt} tokens leaves an answer none of the"
                    f" {shape.positions} positions of '{policy}': set --prompt-tokens below that"
                )
            raise WorkbenchError(
                f"{part} is {one.new}: after a prompt of {one.prompt} tokens '{policy}' has"
                f" positions for {room}; set at most that"
            )


class _Plan:
    """The phases of one training on one machine."""

    def __init__(
        self,
        method: Method,
        machine: Machine,
        learnt: dict[str, Learning],
        sampled: Sequence[Sampled],
    ) -> None:
        self.method, self.machine, self.learnt, self.sampled = method, machine, learnt, sampled

    def phases(self) -> list[dict[str, Any]]:
        """In the order of a training: answers of the policy alone, then each part's rollouts and
        its backward passes.
        """
        found = []
        for one in self.sampled:
            name, items = (
                f"rollouts of {one.part}",
                self.machine.sampling(one, self.learnt.get(one.part)),
            )
            if not one.part:
                name = "answers of an evaluation or a stage"
            found.append(_phase(name, one.part, one.rows, one.length, items))
        for step in self.learnt.values():
            name, rows = f"{step.trainer} of {step.part}", step.micro * step.sides
            found.append(_phase(name, step.part, rows, step.length, self.machine.learning(step)))
        return found

    def memory(self, gpu: GPU | None, last: Learning) -> dict[str, Any]:
        phases = self.phases()
        peak = max(phase["total"] for phase in phases)
        able = [name for name, one in GPUS.items() if peak <= one.memory * GIB]
        # without a name, what even the largest cannot hold
        measure = gpu or max(GPUS.values(), key=lambda one: one.memory)
        remedies = self.remedies(measure)
        return {
            "phases": phases,
            "peak_bytes": peak,
            "fits": None if gpu is None and able else not remedies,
            "fits_on": able,
            "remedies": remedies,
            "largest_micro_batch": micro_that_fits(self.machine, last, gpu) if gpu else None,
        }

    def remedies(self, gpu: GPU) -> list[str]:
        found = []
        for one in self.sampled:
            trainer = self.learnt.get(one.part)
            if total(items := self.machine.sampling(one, trainer)) > gpu.memory * GIB:
                remedy = sampling_remedy(self.machine, one, trainer, gpu, self.method.name)
                what = f"{one.rows:,} answers of {one.length:,} tokens at once"
                found.append(
                    f"{what} need {told(total(items))} of {told(gpu.memory * GIB)} on {gpu.name}:"
                    f" {remedy}"
                )
        for step in self.learnt.values():
            if total(items := self.machine.learning(step)) > gpu.memory * GIB:
                remedy = learning_remedy(self.machine, step, gpu, self.method.name)
                what = (
                    f"{step.trainer} on {step.micro * step.sides:,} rows of {step.length:,} tokens"
                )
                found.append(
                    f"{what} needs {told(total(items))} of {told(gpu.memory * GIB)} on {gpu.name}:"
                    f" {remedy}"
                )
        return found

    def work(self, gpu: GPU | None, last: Learning) -> dict[str, Any]:
        """Tokens a step of the last stage, and hours, where a GPU's speed is known."""
        timed = gpu if gpu and gpu.flops else None
        hours = {
            part: self._hours(one, timed)
            for part, one in self.learnt.items()
            if timed and one.steps is not None
        }
        open_ended = [part for part, one in self.learnt.items() if one.steps is None]
        return {
            "steps": last.steps,
            "rows_per_step": last.rows,
            "tokens_per_step": last.rows * last.sides * last.length,
            "hours": round(sum(hours.values()), 2) if timed and last.part in hours else None,
            "hours_by_part": {part: round(value, 2) for part, value in hours.items()},
            "untimed": open_ended,
            "assumed": assumed(timed) if timed else None,
        }

    def _hours(self, one: Learning, gpu: GPU) -> float:
        drawn = sum(
            sampling_seconds(self.machine.shape, rolled, gpu)
            for rolled in self.sampled
            if rolled.part == one.part
        )
        steps = min(one.steps or 0, MOST)
        return steps * (learning_seconds(self.machine.shape, one, gpu) + drawn) / 3600


def _phase(name: str, part: str, rows: int, length: int, items: dict[str, int]) -> dict[str, Any]:
    return {
        "phase": name,
        "part": part,
        "rows": rows,
        "tokens": length,
        "bytes": items,
        "total": total(items),
    }


def told(size: float) -> str:
    """Bytes as people say them."""
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:,.1f} MiB"
