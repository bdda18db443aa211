"""TRL's GRPO trainer with our sampling, our credit and, where asked for, the ratio of whole
trajectories.
"""

from __future__ import annotations

from typing import Any

from workbench.train import colocate
from workbench.train.credit import left_aligned, right_aligned, whole_responses
from workbench.train.prompts_once import prompts_once
from workbench.train.sampling import sample
from workbench.train.trl_adapter import TRLAdapter
from workbench.train.trl_trainer import quiet
from workbench.types import WorkbenchError


def trainer_class(adapter: TRLAdapter, *, plain: bool, trajectory: bool) -> Any:
    """A class of trainers that report to `adapter`.

    Args:
        plain: the model is none of Unsloth's, whose forward pass and loss are others.
        trajectory: the ratio in the loss is that of a whole response, for TRL's
        `importance_sampling_level="token"` and one
            advantage a response: every token is given it. With `loss_type="grpo"` the loss is
            then the mean over responses of
            −min(ϱA, clip(ϱ, 1 − ε, 1 + ε)A), as KnowRL (arXiv 2506.19807, surrogate objective)
            has it, where ϱ counts as no
            more than TRL's `delta` *(ours)*; the other types weigh responses by their lengths.

    Raises, in training:
        WorkbenchError: a model that is plain was given another loss than this class's, which
        something has patched away.
    """
    import torch
    from trl import GRPOTrainer

    class Trainer(quiet(GRPOTrainer)):  # type: ignore[misc]
        ours = False  # whether this class has computed a loss
        drawn: Any = None  # torch's random state when a batch was sampled
        # the batch whose loss is being computed, where its ratio is a trajectory's
        learnt: dict[str, Any] | None = None

        def _generate_single_turn(
            self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any
        ) -> Any:
            """Completions, vLLM's with the log-probabilities that they were drawn by; with
            Unsloth's model, whose forward pass is another, as TRL does it."""
            with adapter.record.timed("generation"):
                if not plain:
                    return super()._generate_single_turn(prompt_ids, *args, **kwargs)
                return (
                    colocate.sample(self, prompt_ids)
                    if self.use_vllm
                    else (sample(self, prompt_ids), None)
                )

        def _prepare_inputs(self, generation_batch: Any) -> Any:
            """TRL's, and then the random state that one process would be in, which shuffles the
            whole of what was sampled.
            """
            inputs = super()._prepare_inputs(generation_batch)
            if self.accelerator.num_processes > 1 and self.drawn is not None:
                torch.set_rng_state(self.drawn)
                torch.randperm(self.args.generation_batch_size)
                self.drawn = None
            return inputs

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            return adapter.credited(
                super()._generate_and_score_completions(inputs), self.accelerator
            )

        def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
            """TRL's loss asks for these first, and then for the old ones, of which it takes the
            difference by token.
            """
            # what wraps it would have to hear of one pass alone
            alone = model is self.accelerator.unwrap_model(model)
            read = prompts_once(model) if plain and alone and not self.use_liger_kernel else model
            found = super()._get_per_token_logps_and_entropies(read, *args, **kwargs)
            if not plain:  # Unsloth's finds them within its loss, and gives none here
                return found
            self.logprobs_BT = found[0].detach()
            if self.learnt is not None:
                old_BT = self.learnt.get("old_per_token_logps")
                old_BT = self.logprobs_BT if old_BT is None else old_BT
                self.learnt["old_per_token_logps"] = whole_responses(
                    found[0], old_BT, self.learnt["completion_mask"]
                )
            return found

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            given = dict(inputs)  # a step's batches come back in its next iteration
            self.learnt = given if trajectory else None
            loss = super()._compute_loss(model, given)
            self.learnt, self.ours = None, True
            adapter.saw(inputs, self.logprobs_BT)
            return loss

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            if plain and not self.ours:
                raise WorkbenchError(
                    "TRL's trainer was patched in this process, as Unsloth does, and does not"
                    " compute the loss that was asked for: train in a process that imports nothing"
                    " of the kind"
                )
            return loss

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any
        ) -> Any:
            """Unsloth's trainer comes by `_compute_loss` not at all, and its log-probabilities
            begin further right.
            """
            if not plain:
                adapter.saw(right_aligned(inputs))
                # Its mask is made of the ids anew; what was masked out since, it learns by the mask
                # of tools alone.
                inputs = {
                    **inputs,
                    "advantages": left_aligned(inputs),
                    "tool_mask": inputs["completion_mask"],
                }
            return super().compute_loss(model, inputs, *args, **kwargs)

    return Trainer
