"""A policy with a critic on the same LoRA model, and all that a checkpoint of its training
holds.
"""

from __future__ import annotations

import inspect
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.policies.generate import prompt_ids
from workbench.training.loading import Trainee
from workbench.training.recorder import MetricsLog
from workbench.types import Response, WorkbenchError

if TYPE_CHECKING:
    import torch

LARGEST_NORM = 1.0  # of an update's gradient
FLOOR = 0.1  # share of the learning rates that their cosine ends at *(code)*


class Actor:
    """The model in training and its value head: linear, on the last hidden state, and 0 at the
    beginning.

    The critic reads what the policy computes and does not change it: its errors, of another size
    than the policy's, would take the adapter's step away.
    """

    def __init__(self, trainee: Trainee) -> None:
        import torch

        self.model, self.tokenizer = trainee.model, trainee.tokenizer
        width = self.model.config.get_text_config().hidden_size
        self.head = torch.nn.Linear(width, 1).to(self.model.device)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Passes with gradients: where layers are to be computed again, these are in training
        mode, in which nothing can be sampled. What is in them stays out of it: dropout would
        make the ratio of an unchanged policy another than 1."""
        again = [
            module
            for module in self.model.modules()
            if getattr(module, "gradient_checkpointing", False)
        ]
        for module in again:
            module.training = True
        try:
            yield
        finally:
            for module in again:
                module.training = False

    def collate(
        self, responses: Sequence[Response]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ids and attention of prompts and responses, (B, L), and 1 for each token of a
        response, (B, T).
        """
        import torch

        prompts = prompt_ids(self.tokenizer, [response.question for response in responses])
        before = max(len(ids) for ids in prompts)
        after = max(len(response.token_ids) for response in responses)
        pad = self.tokenizer.pad_token_id
        ids, attention = [], []
        for prompt, response in zip(prompts, responses, strict=True):
            left, right = before - len(prompt), after - len(response.token_ids)
            ids.append([pad] * left + prompt + list(response.token_ids) + [pad] * right)
            attention.append([0] * left + [1] * (before + after - left - right) + [0] * right)
        ids_BL, attention_BL = (
            torch.tensor(rows, device=self.model.device) for rows in (ids, attention)
        )
        return ids_BL, attention_BL, attention_BL[:, before:].float()

    def logprobs_and_values(
        self, ids_bL: torch.Tensor, attention_bL: torch.Tensor, length: int, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the last `length` tokens the log-probability of each and the critic's value before
        it: (b, T) both.
        """

        known = inspect.signature(self.model.get_base_model().forward).parameters
        more: dict[str, Any] = {"logits_to_keep": length + 1} if "logits_to_keep" in known else {}
        if "position_ids" in known:
            more["position_ids"] = (attention_bL.cumsum(1) - 1).clamp(min=0)
        hidden: list[torch.Tensor] = []
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
        try:
            output = self.model(
                input_ids=ids_bL, attention_mask=attention_bL, use_cache=False, **more
            )
        finally:
            hook.remove()
        logits_bTV = output.logits[:, -length - 1 : -1].float() / temperature
        sampled_bT = logits_bTV.gather(-1, ids_bL[:, -length:, None]).squeeze(-1)
        values_bT = self.head(hidden[0][:, -length - 1 : -1].detach().float()).squeeze(-1)
        return sampled_bT - logits_bTV.logsumexp(-1), values_bT


class State:
    """Adapter, value head, optimizer, and the generator of all that is random once a run has begun.

    `config` has `optim`, `critic_learning_rate` and `saving`.
    """

    def __init__(self, actor: Actor, config: Any, steps: int, seed: int) -> None:
        import torch

        self.actor, self.config, self.steps = actor, config, steps
        self.weights = [weight for weight in actor.model.parameters() if weight.requires_grad]
        heads = list(actor.head.parameters())
        self.optimizer = torch.optim.AdamW(
            [{"params": self.weights}, {"params": heads}], betas=(0.9, 0.95), weight_decay=0.0
        )
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> int:
        """A seed."""
        import torch

        return int(torch.randint(2**31, (), generator=self.generator))

    def set_rates(self, step: int) -> float:
        """Set the learning rates of a step, counted from 1; returns the adapter's."""
        optim = self.config.optim
        share = schedule(step - 1, self.steps, optim.warmup, optim.schedule)
        adapter, head = self.optimizer.param_groups
        adapter["lr"] = optim.learning_rate * share
        head["lr"] = self.config.critic_learning_rate * share
        return optim.learning_rate * share

    def update(self) -> float:
        """One step of the optimizer, adapter and head clipped apart; returns the norm that the
        adapter's gradient had.

        Raises:
            WorkbenchError: a gradient is not finite; no weight has changed then.
        """
        import torch

        norm = torch.nn.utils.clip_grad_norm_(self.weights, LARGEST_NORM)
        of_head = torch.nn.utils.clip_grad_norm_(self.actor.head.parameters(), LARGEST_NORM)
        if not (torch.isfinite(norm) and torch.isfinite(of_head)):
            raise WorkbenchError(
                "the gradient is not finite: lower the learning rates and begin in another --out"
                " folder"
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(norm)

    def steps_left(self, journal: MetricsLog) -> Iterator[int]:
        """Yield each step that is left, and after it save a checkpoint where one is due. After an
        interrupt no further step follows."""
        for step in range(journal.done + 1, self.steps + 1):
            yield step
            last = step == self.steps
            if step % self.config.saving.save_every == 0 or last or journal.interrupted:
                journal.saved(self.save(journal.out / "checkpoints" / f"checkpoint-{step}"))
            if journal.interrupted and not last:
                journal.stopped = True
                return

    def save(self, folder: Path) -> Path:
        import torch
        from peft import get_peft_model_state_dict

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        held = {
            "adapter": get_peft_model_state_dict(self.actor.model),
            "head": self.actor.head.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }
        torch.save(held, folder / "state.pt")
        return folder

    def load(self, folder: Path) -> None:
        import torch
        from peft import set_peft_model_state_dict

        held = torch.load(folder / "state.pt", weights_only=True, map_location="cpu")
        set_peft_model_state_dict(self.actor.model, held["adapter"])
        self.actor.head.load_state_dict(held["head"])
        self.optimizer.load_state_dict(held["optimizer"])
        self.generator.set_state(held["generator"])


def schedule(step: int, steps: int, warmup: float, kind: str) -> float:
    """The share of the learning rate at a step, counted from 0: a linear rise over the share
    `warmup` of the steps, then constant, linear to 0, or a cosine down to `FLOOR`."""
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / rise
    if kind == "constant":
        return 1.0
    left = max(1, steps - rise)
    if kind == "linear":
        return 1 - (step - rise) / left
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * (step - rise) / left))
