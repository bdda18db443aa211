"""One process of the tests of both loading paths: Unsloth patches TRL irreversibly, so each path
needs its own interpreter.

python -m tests.gpu.cuda_run train plain|unsloth OUT python -m tests.gpu.cuda_run losses
plain|unsloth FOLDER CASE …     (like `grpo/0.05`: the name gives the settings)
"""

import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.credit.tensors import without
from workbench.methods.bench import bench
from workbench.methods.method import Prompts, scaled, training_questions
from workbench.methods.truthrl.method import METHOD
from workbench.training.grpo import train_grpo
from workbench.training.grpo_config import GRPO
from workbench.training.loading import Trainee, load_trainee
from workbench.training.recorder import RolloutRecorder
from workbench.training.unsloth_hooks import right_aligned
from workbench.types import JsonObject

CONFIG = scaled(
    METHOD.configure("tiny"),
    grpo={"steps": 2, "prompts_per_step": 8, "group_size": 4, "save_every": 1},
)

ADVANTAGES = ("one", "constant", "varied")


def train_small(path: str, out: Path) -> None:
    tiny = bench("tiny")
    questions, grade = training_questions(Prompts(), tiny), METHOD.grader(CONFIG, tiny.checks)
    out.mkdir(parents=True, exist_ok=True)
    policy = tiny.path(tiny.policy)
    status = train_grpo(
        CONFIG.grpo,
        questions,
        grade,
        policy,
        out,
        method="truthrl",
        seed=1,
        unsloth=path == "unsloth",
    )
    assert status == "done", status
    print_peak(path)


def losses(path: str, folder: Path, cases: Sequence[str]) -> None:
    """Write each case's loss and adapter gradients, for each kind of advantages, to
    FOLDER/PATH.safetensors.

    The first process to need a batch samples it into FOLDER; the other process reads it.
    """
    from safetensors.torch import save_file

    chosen = bench("tiny")
    asked, grade = training_questions(Prompts(), chosen), METHOD.grader(CONFIG, chosen.checks)
    trainee = load_trainee(
        chosen.path("sft"), lora_r=8, lora_alpha=16, seed=1, unsloth=path == "unsloth"
    )
    assert trainee.path == path, trainee.path
    from workbench.training.grpo_step import RolloutTrainer  # after Unsloth, which patches TRL

    class Unrecorded(RolloutTrainer):
        def record_loss_inputs(self, *_: Any) -> None:
            """Overridden because the other process may have sampled the batch."""

    fill_adapter(trainee)
    results: JsonObject = {}
    for case in cases:
        config, run = settings_of(case), folder / f"{path}-{case.replace('/', '-')}"
        run.mkdir()
        with RolloutRecorder(
            run, "truthrl", grade, steps=config.steps, done=0, max_failed=config.sampling.max_failed
        ) as record:
            trainer = Unrecorded(config, trainee, record, asked, run, seed=1)
            trainer.model.train()
            # set by the training loop, which does not run here
            trainer.current_gradient_accumulation_steps = 1
            batch = batch_of(
                trainer, folder / f"batch-{case.partition('/')[2].replace('/', '-')}.safetensors"
            )
            # like a response that could not be graded
            batch = without([0], batch, trainer.accelerator)
            for kind, advantages in advantages_of(batch).items():
                given = {**batch, "advantages": advantages}
                results |= {
                    f"{case}/{kind}/{name}": value
                    for name, value in learnt(trainer, trainee, given).items()
                }
    save_file(results, folder / f"{path}.safetensors")
    print_peak(path)


def settings_of(case: str) -> GRPO:
    """ "dapo/0.05" gives the loss type and KL weight, with all other parts of a loss;
    "dapo/0.05/old" trains on responses sampled some updates ago.
    """
    loss_type, beta, *old = case.split("/")
    found = scaled(CONFIG.grpo, beta=float(beta), iterations=2 if old else 1)
    return replace(found, **{"loss_type": loss_type})  # a Literal for mypy


def batch_of(trainer: Any, file: Path) -> JsonObject:
    """Responses to prompts of several lengths, with the log-probabilities for the loss; an older
    policy's differ enough to clip some tokens.
    """
    import torch
    from safetensors.torch import load_file, save_file

    if not file.exists():
        sampled = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
        kept = {
            key: value.cpu().contiguous()
            for key, value in sampled.items()
            if isinstance(value, torch.Tensor)
        }
        if "old_per_token_logps" in kept:
            noise = torch.randn(
                kept["old_per_token_logps"].shape, generator=torch.Generator().manual_seed(1)
            )
            kept["old_per_token_logps"] += 0.2 * noise
        save_file(kept, file)
    device = next(trainer.model.parameters()).device
    batch = {key: value.to(device) for key, value in load_file(file).items()}
    padding = (batch["prompt_mask"] == 0).sum(1)
    assert padding.min() < padding.max(), (
        "prompts of one length would not show advantages in the wrong columns"
    )
    return batch


def advantages_of(batch: JsonObject) -> JsonObject:
    import torch

    rows, length = batch["completion_ids"].shape
    one = torch.linspace(-1, 2, rows, device=batch["completion_ids"].device)
    ramp = torch.linspace(0.5, 1.5, length, device=one.device)
    kinds = {
        "one": one,
        "constant": one[:, None].expand(rows, length),
        "varied": one[:, None] * ramp,
    }
    return {kind: kinds[kind].contiguous() for kind in ADVANTAGES}


def learnt(trainer: Any, trainee: Trainee, batch: JsonObject) -> JsonObject:
    """The loss of a batch, as `loss`, and the gradients by the names of their weights."""
    trainer.model.zero_grad()
    with trainer.compute_loss_context_manager():
        loss = trainer.compute_loss(
            trainer.model, batch if trainee.path == "unsloth" else right_aligned(batch)
        )
    assert loss.dim() == 0, loss.shape
    loss.backward()
    gradients = {name: weight.grad.float().cpu().contiguous() for name, weight in trained(trainee)}
    return {"loss": loss.detach().float().cpu(), **gradients}


def print_peak(path: str) -> None:
    import torch

    if torch.cuda.is_available():
        print(f"{path}: at most {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of GPU memory")


def trained(trainee: Trainee) -> list[tuple[str, Any]]:
    return [
        (name, weight) for name, weight in trainee.model.named_parameters() if weight.requires_grad
    ]


def fill_adapter(trainee: Trainee) -> None:
    """Set the same nonzero adapter on both paths, by parameter name: with lora_B = 0, half of the
    gradients would be zero.
    """
    import torch

    for name, weight in trained(trainee):
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        weight.data.copy_(torch.randn(weight.shape, generator=generator) * 0.02)


if __name__ == "__main__":
    task, path, folder, *cases = sys.argv[1:]
    if task == "train":
        train_small(path, Path(folder))
    else:
        losses(path, Path(folder), cases)
