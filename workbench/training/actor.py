"""Define a policy with a value head (`Actor`), and its optimizer and checkpoints (`State`).

PPO and the training of reward models use both.
"""

import inspect
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.policies.generate import prompt_ids
from workbench.policies.hf import padded
from workbench.training.loading import Trainee
from workbench.training.recorder import MetricsLog
from workbench.types import Response, WorkbenchError

if TYPE_CHECKING:
    from torch import Tensor

MAX_GRAD_NORM = 1.0
FINAL_SHARE = 0.1  # share of the learning rate at the end of the cosine schedule *(code)*


class Actor:
    """The policy in training (base model and LoRA adapter) with a linear value head (the critic).

    The head reads the last hidden state without its gradient, so the critic's loss does not train
    the adapter. The head's weights start at 0.
    """

    def __init__(self, trainee: Trainee) -> None:
        import torch

        self.model, self.tokenizer = trainee.model, trainee.tokenizer
        width = self.model.config.get_text_config().hidden_size
        self.head = torch.nn.Linear(width, 1).to(self.model.device)
        # an untrained critic predicts 0, which adds nothing to the advantages
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Context manager for forward passes with gradients.

        It enables gradient checkpointing if the model was loaded with it. Dropout stays off.
        """
        layers = [
            module
            for module in self.model.modules()
            if getattr(module, "gradient_checkpointing", False)
        ]
        for layer in layers:
            # Required by gradient checkpointing. `train()` would also change the submodules: with
            # their dropout, the probability ratio of an unchanged policy would not be 1.
            layer.training = True
        try:
            yield
        finally:
            for layer in layers:
                layer.training = False

    def collate(self, responses: Sequence[Response]) -> "tuple[Tensor, Tensor, Tensor]":
        """Return token ids (B, L), attention mask (B, L) and a mask of response tokens (B, T).

        Each row has a prompt, padded on the left, and its response, padded on the right. T is the
        length of the longest response in tokens. L is T plus the length of the longest prompt.
        """
        import torch

        prompts = prompt_ids(self.tokenizer, [response.question for response in responses])
        sampled = [response.token_ids for response in responses]
        # padded on both sides, so that every response starts in the same column
        parts = [
            padded(rows, self.tokenizer.pad_token_id, self.model.device, left=left)
            for rows, left in ((prompts, True), (sampled, False))
        ]
        ids_BL, attention_BL = (torch.cat(pieces, dim=1) for pieces in zip(*parts, strict=True))
        return ids_BL, attention_BL, parts[1][1].float()

    def logprobs_and_values(
        self, ids_bL: "Tensor", attention_bL: "Tensor", length: int, temperature: float
    ) -> "tuple[Tensor, Tensor]":
        """Return the log-probability and the critic's value of each row's last `length` tokens.

        Both tensors are (b, `length`), for b rows. Log-probabilities are at `temperature`. A
        token's value is computed at the position before the token.
        """
        known = inspect.signature(self.model.get_base_model().forward).parameters
        options = {
            "logits_to_keep": length + 1,  # saves the logits of the prompt
            "position_ids": (attention_bL.cumsum(1) - 1).clamp(min=0),
        }
        hidden: list[Tensor] = []
        # the input of the output layer is the last hidden state
        hook = self.model.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: hidden.append(inputs[0])
        )
        try:
            output = self.model(
                input_ids=ids_bL,
                attention_mask=attention_bL,
                use_cache=False,
                **{name: value for name, value in options.items() if name in known},
            )
        finally:
            hook.remove()
        # logits and values are read from the column before a token, which predicts the token
        logits_bTV = output.logits[:, -length - 1 : -1].float() / temperature
        sampled_bT = logits_bTV.gather(-1, ids_bL[:, -length:, None]).squeeze(-1)
        # detached: the critic's loss has a larger scale and would dominate the adapter's update
        values_bT = self.head(hidden[0][:, -length - 1 : -1].detach().float()).squeeze(-1)
        return sampled_bT - logits_bTV.logsumexp(-1), values_bT


class State:
    """The training state of an `Actor`: adapter, value head, optimizer and random generator.

    A checkpoint stores this state. The generator draws the random numbers of the training steps.

    Args:
        config: the settings, a `PPO` or `RewardModel`: learning rates and steps between saves.
        steps: total number of training steps; the learning-rate schedule depends on it.
    """

    def __init__(self, actor: Actor, config: Any, steps: int, seed: int) -> None:
        import torch

        self.actor, self.config, self.steps = actor, config, steps
        self.weights = [weight for weight in actor.model.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(
            [{"params": self.weights}, {"params": list(actor.head.parameters())}],
            betas=(0.9, 0.95),
            weight_decay=0.0,  # torch's default of 0.01 would pull the adapter to the base model
        )
        # a separate generator, because libraries advance torch's global one; its state is stored
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> int:
        """Return a new random seed, drawn from this state's generator."""
        import torch

        return int(torch.randint(2**31, (), generator=self.generator))

    def set_rates(self, step: int) -> float:
        """Set the learning rates of adapter and head for a step, and return the adapter's rate.

        Steps are counted from 1.
        """
        optim = self.config.optim
        share = schedule(step - 1, self.steps, optim.warmup, optim.schedule)
        adapter, head = self.optimizer.param_groups
        adapter["lr"] = optim.learning_rate * share
        head["lr"] = self.config.critic_learning_rate * share
        return optim.learning_rate * share

    def update(self) -> float:
        """Do one optimizer step, and return the norm of the adapter's gradient before clipping.

        The gradients of adapter and head are clipped separately.

        Raises:
            WorkbenchError: a gradient is not finite; the weights are then unchanged.
        """
        import torch

        # separately: else a large gradient of the new head would scale down that of the adapter
        norm, head_norm = (
            torch.nn.utils.clip_grad_norm_(weights, MAX_GRAD_NORM)
            for weights in (self.weights, self.actor.head.parameters())
        )
        if not (torch.isfinite(norm) and torch.isfinite(head_norm)):
            raise WorkbenchError(
                f"the gradient is not finite (norm {float(norm)} of the adapter,"
                f" {float(head_norm)} of the value head): lower the learning rates and start again"
                " in another --out folder"
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(norm)

    def steps_left(self, metrics: MetricsLog) -> Iterator[int]:
        """Yield the number of each remaining step, counted from 1; the caller trains the step.

        A checkpoint is saved every `saving.save_every` steps and after the last step. After Ctrl-C,
        the iteration saves a checkpoint of the current step and ends.
        """
        for step in range(metrics.done + 1, self.steps + 1):
            yield step
            last = step == self.steps
            if step % self.config.saving.save_every == 0 or last or metrics.interrupted:
                folder = metrics.out / "checkpoints" / f"checkpoint-{step}"
                metrics.complete_checkpoint(self.save(folder))
            if metrics.interrupted and not last:
                metrics.stopped = True
                return

    def save(self, folder: Path) -> Path:
        """Write a checkpoint to `folder` and return `folder`. An existing folder is replaced."""
        import torch
        from peft import get_peft_model_state_dict

        # a kill may have left half a checkpoint there
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        state = {
            "adapter": get_peft_model_state_dict(self.actor.model),
            "head": self.actor.head.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }
        torch.save(state, folder / "state.pt")
        return folder

    def load(self, folder: Path) -> None:
        """Restore the state from a checkpoint that `save` wrote to `folder`."""
        import torch
        from peft import set_peft_model_state_dict

        # `weights_only`, because a pickle could run code; the generator needs its state on the CPU
        state = torch.load(folder / "state.pt", weights_only=True, map_location="cpu")
        set_peft_model_state_dict(self.actor.model, state["adapter"])
        self.actor.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])


def schedule(step: int, steps: int, warmup: float, kind: str) -> float:
    """Return the factor, from 0 to 1, for the learning rate at `step`, counted from 0.

    In the first `warmup` · `steps` steps, the factor rises linearly to 1. The rest depends on
    `kind`: it stays 1 ("constant"), falls linearly to 0 ("linear"), or falls as a cosine to
    `FINAL_SHARE`, 0.1 ("cosine").
    """
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / rise  # + 1, because a rate of 0 would waste the first step
    if kind == "constant":
        return 1.0
    left = max(1, steps - rise)
    if kind == "linear":
        return 1 - (step - rise) / left
    return FINAL_SHARE + (1 - FINAL_SHARE) * 0.5 * (1 + math.cos(math.pi * (step - rise) / left))
