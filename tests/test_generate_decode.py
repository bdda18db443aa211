"""Continuous batching, compared with transformers' `generate`, forward passes without a cache,
and exact probabilities.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from tests.helpers.chi_square import chi_square, next_probabilities
from tests.helpers.errors import raises_error
from tests.helpers.grpo_run import perturb
from workbench.methods.bench import bench
from workbench.policies import hf
from workbench.policies.decode import (
    forward_function,
    inverse_cdf,
    plain_model,
    prefill,
    tail_length,
    token_sampler,
)
from workbench.policies.generate import Sampling, prompt_ids
from workbench.types import JsonObject

VOCABULARY = 12
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
}
ROTARY = {**SMALL, "intermediate_size": 32, "num_key_value_heads": 2}
PROMPTS = [
    [5, 6, 7, 8, 9, 2, 3],
    [5, 6, 7, 8, 9, 3],
    [5, 6, 7, 8, 9, 2, 4],
    [7],
    [5, 6, 7, 8, 9, 2, 3],
    [8, 4, 1],
    [2, 2],
]
HOW = Sampling(max_new_tokens=9, greedy=True, batch_size=3)


@pytest.fixture(autouse=True)
def passes_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share common prefixes even if that saves little time."""
    monkeypatch.setattr("workbench.policies.decode.PASS", 1)


def random_model(family: str, **config: Any) -> Any:
    """A two-layer model whose next token depends on all previous tokens."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **config))
        for weight in model.parameters():
            weight.data.normal_(std=0.4)
    return model.eval()


@pytest.fixture(scope="module")
def qwen() -> Any:
    return random_model("qwen2", **ROTARY)


def without_cache(model: Any, prompt: Sequence[int], stops: Sequence[int], most: int) -> list[int]:
    """The greedy completion, with a full forward pass for each token."""
    import torch

    said: list[int] = []
    while len(said) < most and not (said and said[-1] in stops):
        with torch.no_grad():
            said.append(int(model(torch.tensor([[*prompt, *said]])).logits[0, -1].argmax()))
    return said


def greedy(model: Any, stops: Sequence[int], how: Sampling = HOW) -> list[list[int]]:
    return [ids for ids, _ in hf.complete(model, 0, PROMPTS, stops, how)]


@pytest.mark.parametrize("batch_size", [pytest.param(3, marks=pytest.mark.slow), 64])
def test_greedy_answers_of_the_shipped_policy_equal_those_of_generate(batch_size: int) -> None:
    import torch

    tiny = bench("tiny")
    policy = tiny.load("sft")
    questions = [
        *tiny.questions("test")[::90],
        *tiny.questions("ood")[::200],
        *tiny.questions("test", ["biography"])[::80],
    ]
    prompts = prompt_ids(policy.tokenizer, questions)
    how = Sampling(max_new_tokens=60, greedy=True, batch_size=batch_size)
    completions = [ids for ids, _ in policy.complete(prompts, policy.stop_ids, how)]
    with torch.no_grad():
        expected = hf.by_generate(
            policy.model, 0, list(map(tuple, prompts)), policy.stop_ids, how, 64
        )
    assert completions == expected
    assert len(set(map(len, completions))) > 5  # rows finish at different times


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("qwen2", ROTARY),
        ("gpt2", {**SMALL, "n_positions": 32, "n_inner": 32}),  # learned positions
        ("mpt", {"vocab_size": VOCABULARY, "d_model": 16, "n_layers": 2, "n_heads": 4}),  # ALiBi
    ],
)
@pytest.mark.parametrize("stops", [[], [3, 5, 8]])
def test_greedy_answers_of_any_model_equal_those_without_a_cache(
    family: str, config: JsonObject, stops: list[int]
) -> None:
    model = random_model(family, **config)
    assert plain_model(model) is model
    expected = [without_cache(model, prompt, stops, HOW.max_new_tokens) for prompt in PROMPTS]
    assert greedy(model, stops) == expected
    assert greedy(model, stops, replace(HOW, batch_size=1)) == expected
    assert [
        hf.by_generate(model, 0, [tuple(prompt)], stops or [VOCABULARY], HOW, 1)[0]
        for prompt in PROMPTS
    ] == expected


def test_finished_rows_in_the_batch_do_not_grow() -> None:
    """The model has just enough positions for the longest answer. With this seed, a row stays
    longer than its group.
    """
    how = Sampling(max_new_tokens=9, seed=1, batch_size=16)
    model = random_model("gpt2", **SMALL, n_positions=7 + how.max_new_tokens - 1, n_inner=32)
    for weight in model.parameters():
        weight.data.mul_(0.3)  # so that answers have many lengths
    rng = random.Random(0)
    prompts = [[rng.randrange(1, VOCABULARY) for _ in range(7)] for _ in range(150)]
    completions = [ids for ids, _ in hf.complete(model, 0, prompts, [3], how)]
    assert set(map(len, completions)) == set(range(1, 10))


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("mistral", {**ROTARY, "sliding_window": 3}),
        ("bloom", SMALL),  # prepares its inputs differently
        ("mamba", {**SMALL, "state_size": 4}),  # recurrent
    ],
)
def test_models_with_another_cache_use_generate(family: str, config: JsonObject) -> None:
    model = random_model(family, **config)
    assert plain_model(model) is None
    # transformers' Mamba does not mask padding
    how = replace(HOW, batch_size=1) if family == "mamba" else HOW
    assert greedy(model, [3, 5], how) == [
        without_cache(model, prompt, [3, 5], HOW.max_new_tokens) for prompt in PROMPTS
    ]
    drawn = Sampling(max_new_tokens=5, seed=4)
    assert hf.complete(model, 0, PROMPTS, [3], drawn) == hf.complete(model, 0, PROMPTS, [3], drawn)


def test_a_lora_adapter_is_decoded_and_other_adapters_use_generate() -> None:
    from peft import LoraConfig, PromptTuningConfig, get_peft_model

    lora = get_peft_model(
        random_model("qwen2", **ROTARY), LoraConfig(r=2, target_modules=["q_proj", "down_proj"])
    ).eval()
    before = greedy(lora, [3])
    perturb(lora, 1.0)
    after = greedy(lora, [3])
    assert plain_model(lora) is lora.get_base_model() and after != before
    assert after == greedy(lora.merge_and_unload(), [3])
    tuned = get_peft_model(
        random_model("qwen2", **ROTARY),
        PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2),
    )
    assert plain_model(tuned) is None


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.8), (1.0, 0.01)])
def test_samples_have_the_exact_distribution(qwen: Any, temperature: float, top_p: float) -> None:
    """Pairs of tokens, in two groups that share their prefill, while other prompts join and
    finish.
    """
    how = Sampling(max_new_tokens=2, temperature=temperature, top_p=top_p, seed=3, batch_size=100)
    groups = [PROMPTS[0]] * 3000 + [PROMPTS[2]] * 3000
    completions = [ids for ids, _ in hf.complete(qwen, 0, [*groups, *PROMPTS], [3], how)]
    for prompt, said in ((PROMPTS[0], completions[:3000]), (PROMPTS[2], completions[3000:6000])):
        exact: dict[tuple[int, ...], float] = {}
        for first, p in next_probabilities(qwen, prompt, how).items():
            if first == 3:  # the end token
                exact[first,] = p
            else:
                after = next_probabilities(qwen, [*prompt, first], how)
                exact |= {(first, second): p * q for second, q in after.items()}
        assert chi_square(Counter(map(tuple, said)), exact) < 4


@pytest.mark.slow
def test_samples_depend_only_on_the_seed(qwen: Any) -> None:
    drawn = {
        (seed, size): hf.complete(
            qwen, 0, PROMPTS * 3, [3], Sampling(max_new_tokens=8, seed=seed, batch_size=size)
        )
        for seed, size in product((1, 2), (1, 4, 256))
    }
    assert (
        drawn[1, 1] == drawn[1, 4] == drawn[1, 256] != drawn[2, 1] == drawn[2, 4] == drawn[2, 256]
    )


@pytest.mark.parametrize("uniform", [0.0, 0.1, 0.49, 0.51, 0.9, 1 - 2**-53])
def test_a_token_of_probability_zero_is_never_sampled(uniform: float) -> None:
    import torch

    # the last row sums to 0.5
    probabilities = torch.tensor([[0, 0.5, 0, 0.5, 0], [0, 0, 1, 0, 0], [0.1] * 5])
    numbers = torch.full((3, 1), uniform, dtype=torch.float64)
    assert inverse_cdf(probabilities, numbers) == [1 if uniform < 0.5 else 3, 2, int(uniform * 5)]


def test_greedy_takes_the_most_probable_and_nan_is_refused() -> None:
    import torch

    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, float("-inf"), 1.0]])
    assert token_sampler(Sampling(1, greedy=True))(logits, [0.9, 0.9]) == [1, 0]
    with raises_error("are NaN"):
        token_sampler(Sampling(1))(logits * float("nan"), [0.5, 0.5])


def test_common_prefixes_are_computed_once_if_that_saves_time(
    qwen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    # Four prompts of 7 tokens, 28 in all. Tails of 2: 5 for the common prefix and 4 × 2 = 13. Tails
    # of 1: 4 × 6 + 4 × 1.
    alike = [(5, 6, 7, 8, 9, last, last + 1) for last in range(1, 5)]
    assert tail_length(alike) == 2
    monkeypatch.setattr("workbench.policies.decode.PASS", 28 - 13)
    assert tail_length(alike) == 2
    monkeypatch.setattr("workbench.policies.decode.PASS", 28 - 12)
    assert tail_length(alike) == 0
    monkeypatch.setattr("workbench.policies.decode.PASS", 1)
    assert (
        tail_length([(n, 2, 3, 4) for n in range(5)])
        == tail_length([(1, 2, 3)])
        == tail_length([(1,), (2,)])
        == 0
    )
    uneven = [*alike, (5, 6, 7, 8, 9, 3), (4, 6, 7, 8, 9, 3)]
    with torch.no_grad():
        logits, cache = prefill(forward_function(qwen, 0), qwen.config, uneven)
        apart = [qwen(torch.tensor([prompt])).logits[0, -1] for prompt in uneven]
    assert tail_length(uneven) > 0 and cache.get_seq_length() == 7
    assert torch.allclose(logits, torch.stack(apart), atol=1e-5)
