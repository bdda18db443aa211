"""Rollouts that our engine generates for a TRL trainer: their distribution and their seed."""

from collections import Counter
from typing import Any

import pytest

import tests.helpers.grpo_run as run
from tests.helpers.chi_square import chi_square, next_probabilities
from workbench.policies.generate import Sampling
from workbench.util.config import scaled

CONFIG = scaled(run.SHORT, steps=6, temperature=0.9, top_p=0.6, max_new_tokens=3)


@pytest.fixture(scope="module")
def trainer(policy: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer whose adapter is not the identity."""
    trainer = run.trainer_of(CONFIG, policy, tmp_path_factory.mktemp("run"), run.grade)
    run.perturb(trainer.model)
    return trainer


@pytest.mark.slow
def test_rollouts_have_the_distribution_of_the_model_in_training(trainer: Any) -> None:
    import torch

    trainer.model.train()
    torch.manual_seed(1)
    prompts = [[2, 70, 71, 72, 3]] * 2000 + [[2, 75, 3]] * 2000
    completions, logprobs = trainer._generate_single_turn(prompts, None, {})
    assert logprobs is None and trainer.model.training
    how = Sampling(max_new_tokens=3, temperature=0.9, top_p=0.6)
    for start in (0, 2000):
        counts = Counter(ids[0] for ids in completions[start : start + 2000])
        assert chi_square(counts, next_probabilities(trainer.model, prompts[start], how)) < 4
    again, _ = trainer._generate_single_turn(prompts, None, {})
    torch.manual_seed(1)
    assert trainer._generate_single_turn(prompts, None, {})[0] == completions != again
