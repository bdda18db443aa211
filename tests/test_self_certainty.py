"""Intuitor's self-certainty (arXiv 2505.19590) as the reward of GRPO."""

import math
from pathlib import Path
from statistics import fmean, stdev

import pytest

import tests.helpers.grpo_run as run
from workbench.policies.generate import prompt_ids
from workbench.policies.load import load_policy
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.training.self_certainty import SELF_CERTAINTY, kl_from_uniform
from workbench.types import Response
from workbench.util.config import scaled

CONFIG = scaled(run.SHORT, self_certainty=True)


def test_the_divergence_from_uniform_by_hand() -> None:
    """KL(U ‖ p) of p = (¼, ¾) is ½ log(½ / ¼) + ½ log(½ / ¾) = ½ log 4/3, and that of (½, ½) is 0.
    Adding a constant to the logits changes nothing.
    """
    import torch

    logits_TV = torch.tensor([[0.0, math.log(3)], [5.0, 5.0 + math.log(3)], [7.0, 7.0]])
    half = math.log(4 / 3) / 2
    assert kl_from_uniform(logits_TV).tolist() == pytest.approx([half, half, 0.0], abs=1e-6)


def certainty(policy: str, response: Response, temperature: float) -> float:
    """The mean over the sampled tokens of Σ_j 1/V log(1 / (V p_j)), one response at a time."""
    import torch

    loaded = load_policy(policy)
    [prompt] = prompt_ids(loaded.tokenizer, [response.question])
    ids = torch.tensor([prompt + list(response.token_ids)])
    with torch.no_grad():
        p_TV = (loaded.model(ids).logits[0, len(prompt) - 1 : -1] / temperature).softmax(-1)
    size = p_TV.shape[-1]
    return fmean(sum(math.log(1 / (size * p)) / size for p in p_V) for p_V in p_TV.tolist())


@pytest.mark.slow
def test_the_current_policys_certainty_is_maximised(policy: str, tmp_path: Path) -> None:
    temperature = 0.7
    assert run.grpo(scaled(CONFIG, temperature=temperature), policy, tmp_path) == "done"
    rows, metrics = list(iter_feedback(tmp_path)), metrics_rows(tmp_path)
    for step in (1, 2):
        own = [row for row in rows if row.response.step == step]
        values = [row.rewards[SELF_CERTAINTY].value or 0.0 for row in own]
        initial = [certainty(policy, row.response, temperature) for row in own]
        # the first step's policy is the initial one, the second's is not
        assert (values == pytest.approx(initial, rel=1e-4)) is (step == 1)
        assert metrics[step - 1]["reward"] == pytest.approx(fmean(values))
        for group in {row.response.group for row in own}:
            members = [n for n, row in enumerate(own) if row.response.group == group]
            scores = [values[n] for n in members]
            for n in members:
                expected = (values[n] - fmean(scores)) / (stdev(scores) + 1e-4)
                assert own[n].response.advantages[0] == pytest.approx(expected, abs=1e-3)
    # the method's reward is recorded; responses without it have advantages, too
    assert {type(row.rewards["m"].value) for row in rows} == {float, type(None)}
