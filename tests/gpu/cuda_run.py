"""One process of the CUDA tests: Unsloth patches TRL for good, so each path needs an interpreter of its own.

python -m tests.gpu.cuda_run train plain|unsloth OUT
python -m tests.gpu.cuda_run losses plain|unsloth OUT BATCH
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.bench import bench
from workbench.recipes.method import Prompts, scaled, training_questions
from workbench.recipes.truthrl import METHOD
from workbench.train.credit import right_aligned
from workbench.train.grpo import make_trainer, train_grpo
from workbench.train.models import Trainee, load_trainee
from workbench.train.record import Record
from workbench.train.trl_adapter import TRLAdapter


class Unrecorded(TRLAdapter):
    def saw(self, *_: Any) -> None:
        """The process that reads the batch did not sample what it holds."""


CONFIG = scaled(METHOD.configure("tiny"), grpo={"steps": 2, "prompts_per_step": 8, "group_size": 4, "save_every": 1})

ADVANTAGES = ("one", "constant", "varied")


def train_small(path: str, out: Path) -> None:
    tiny = bench("tiny")
    questions, grade = training_questions(Prompts(), tiny), METHOD.grader(CONFIG, tiny.checks)
    out.mkdir(parents=True, exist_ok=True)
    policy = tiny.path(tiny.policy)
    status = train_grpo(CONFIG.grpo, questions, grade, policy, out, method="truthrl", seed=1, unsloth=path == "unsloth")
    assert status == "done", status
    print_peak(path)


def losses(path: str, out: Path, batch_file: Path) -> None:
    """Write the loss and the adapter's gradients on one fixed batch, for each kind of advantages, to OUT (safetensors).

    The batch is sampled by the process that finds no BATCH yet, and read by the other one.
    """
    import torch
    from safetensors.torch import load_file, save_file

    chosen, config = bench("tiny"), replace(CONFIG.grpo, beta=0.05)  # with all that a loss can be made of
    asked, grade = training_questions(Prompts(), chosen), METHOD.grader(CONFIG, chosen.checks)
    trainee = load_trainee(chosen.path("sft"), lora_r=8, lora_alpha=16, seed=1, unsloth=path == "unsloth")
    assert trainee.path == path, trainee.path
    fill_adapter(trainee)
    folder = out.parent / f"{path}-run"
    folder.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    with Record(folder, "truthrl", grade, steps=config.steps, done=0, max_failed=config.max_failed) as record:
        adapter = Unrecorded(record, asked, trainee.tokenizer, config.group_size)
        trainer = make_trainer(config, trainee, adapter, folder, seed=1)
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1  # set by the training loop, which does not run here
        if not batch_file.exists():
            sampled = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
            kept = {key: value for key, value in sampled.items() if isinstance(value, torch.Tensor)}
            save_file({key: value.cpu().contiguous() for key, value in kept.items()}, batch_file)
        device = next(trainer.model.parameters()).device
        batch = {key: value.to(device) for key, value in load_file(batch_file).items()}
        if path == "plain":
            batch = right_aligned(batch)
        padding = (batch["prompt_mask"] == 0).sum(1)
        assert padding.min() < padding.max(), "prompts of one length would not show advantages in the wrong columns"
        batch["completion_mask"][0] = 0  # as that of a response that could not be graded
        rows, length = batch["completion_ids"].shape
        one = torch.linspace(-1, 2, rows, device=device)
        ramp = torch.linspace(0.5, 1.5, length, device=device)
        kinds = {"one": one, "constant": one[:, None].expand(rows, length), "varied": one[:, None] * ramp}
        for kind in ADVANTAGES:
            trainer.model.zero_grad()
            with trainer.compute_loss_context_manager():
                loss = trainer.compute_loss(trainer.model, {**batch, "advantages": kinds[kind].contiguous()})
            assert loss.dim() == 0, loss.shape
            loss.backward()
            results[f"{kind}/loss"] = loss.detach().float().cpu()
            for name, weight in trained(trainee):
                results[f"{kind}/{name}"] = weight.grad.float().cpu().contiguous()
    save_file(results, out)
    print_peak(path)


def print_peak(path: str) -> None:
    import torch

    if torch.cuda.is_available():
        print(f"{path}: at most {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of GPU memory")


def trained(trainee: Trainee) -> list[tuple[str, Any]]:
    return [(name, weight) for name, weight in trainee.model.named_parameters() if weight.requires_grad]


def fill_adapter(trainee: Trainee) -> None:
    """The same non-zero adapter on both paths, by parameter name: with lora_B at zero half the gradients would be zero."""
    import torch

    for name, weight in trained(trainee):
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        weight.data.copy_(torch.randn(weight.shape, generator=generator) * 0.02)


if __name__ == "__main__":
    task, path, *files = sys.argv[1:]
    if task == "train":
        train_small(path, Path(files[0]))
    else:
        losses(path, Path(files[0]), Path(files[1]))
