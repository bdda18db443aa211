"""A prompt shared by several responses is computed once, with the log-probabilities and gradients
of a pass over every row.
"""

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from tests.helpers import examples
from tests.helpers.grpo_run import perturb
from workbench.policies.hf import has_linear_head
from workbench.training.shared_prefix import shared_prefix

VOCABULARY, PAD, LENGTH = 50, 0, 5
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}


def model_of(kind: str, **more: Any) -> Any:
    """A random model in float64; its adapter's second matrices are not 0."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**SMALL, **more}))
    model = get_peft_model(
        model, LoraConfig(r=4, target_modules=["q_proj", "k_proj", "v_proj", "down_proj"])
    ).double()
    perturb(model, 0.1)
    return model


def rows(lengths: tuple[int, ...], order: list[int]) -> dict[str, torch.Tensor]:
    """Prompts of these lengths, one per row in `order`, with responses of different lengths."""
    generator = torch.Generator().manual_seed(1)
    widest = max(lengths)
    prompts = torch.full((len(lengths), widest), PAD)
    for prompt, length in zip(prompts, lengths, strict=True):
        prompt[widest - length :] = torch.randint(1, VOCABULARY, (length,), generator=generator)
    responses = torch.randint(1, VOCABULARY, (len(order), LENGTH), generator=generator)
    said = torch.tensor(
        [[place < 1 + number % LENGTH for place in range(LENGTH)] for number in range(len(order))]
    )
    mask = torch.cat(((prompts != PAD)[order], said), 1).long()
    return {"input_ids": torch.cat((prompts[order], responses), 1) * mask, "attention_mask": mask}


def learnt(
    model: Any, decoder: Any, given: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Log-probabilities of the responses' tokens, and the gradients of a weighted sum of them."""
    model.zero_grad()
    hidden = decoder(**given, use_cache=False).last_hidden_state[:, -LENGTH - 1 : -1]
    logits = model.get_output_embeddings()(hidden)
    assert logits.shape == (len(given["input_ids"]), LENGTH, VOCABULARY)
    logprobs = logits.log_softmax(-1).gather(-1, given["input_ids"][:, -LENGTH:, None])[..., 0]
    said = given["attention_mask"][:, -LENGTH:]
    weights = torch.linspace(-1, 1, said.numel(), dtype=torch.float64).view_as(said)
    (logprobs * said * weights).sum().backward()
    gradients = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    assert gradients and all(bool(gradient.any()) for gradient in gradients)
    return (logprobs * said).detach(), gradients


SHUFFLED = [2, 0, 1, 0, 2, 2, 1, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize(
    ("lengths", "order"),
    [((7, 3, 5), SHUFFLED), ((4, 4, 4), SHUFFLED), ((6,), [0, 0]), ((6, 1), [1, 1, 1, 0])],
    ids=["mixed lengths", "no padding", "one prompt", "a prompt of one token"],
)
def test_it_equals_a_pass_over_every_row(
    kind: str, lengths: tuple[int, ...], order: list[int]
) -> None:
    model, given = model_of(kind), rows(lengths, order)
    read: list[int] = []
    model.get_base_model().model.register_forward_pre_hook(
        lambda _, __, more: read.append(more["input_ids"].numel()), with_kwargs=True
    )
    found, gradients = learnt(model, shared_prefix(model, LENGTH).base_model, given)
    shared, read[:] = sum(read), []
    plain, expected = learnt(model, model.get_base_model().base_model, given)
    assert (
        shared
        == len(lengths) * max(lengths) + len(order) * LENGTH
        < sum(read)
        == given["input_ids"].numel()
    )
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradients, expected, rtol=0, atol=1e-6)


def test_the_usual_pass_is_used_without_gain_or_equality() -> None:
    model, given = model_of("llama"), rows((7, 3, 5), [0, 1, 2])
    read: list[int] = []
    model.get_base_model().base_model.register_forward_pre_hook(lambda *_: read.append(1))
    learnt(model, shared_prefix(model, LENGTH).base_model, given)
    assert len(read) == 1  # every prompt has one response
    model.get_base_model().gradient_checkpointing_enable()
    assert shared_prefix(model, LENGTH) is model
    sliding = model_of("qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=0)
    assert shared_prefix(sliding, LENGTH) is sliding


@pytest.mark.parametrize(("kind", "more", "linear"), examples("linear_heads"))
def test_heads_that_change_the_logits_are_not_computed_in_chunks(
    kind: str, more: dict[str, Any], linear: bool
) -> None:
    config = AutoConfig.for_model(kind, **{**SMALL, **more, "pad_token_id": PAD})
    assert has_linear_head(AutoModelForCausalLM.from_config(config)) is linear


@pytest.mark.parametrize(("target", "linear"), [("q_proj", True), ("lm_head", False)])
def test_a_head_with_an_adapter_is_not_linear(target: str, linear: bool) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **SMALL))
    assert has_linear_head(get_peft_model(model, LoraConfig(target_modules=[target]))) is linear
