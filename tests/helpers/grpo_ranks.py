"""Two GRPO steps with fixed completions on as many processes as there are: python -m
tests.helpers.grpo_ranks POLICY OUT.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tests.helpers.grpo_run as run
import workbench.training.grpo_step as grpo_step
from tests.helpers.credit import by_token
from workbench.util.config import scaled


def fixed(trainer: Any, prompt_ids: Sequence[Sequence[int]]) -> list[list[int]]:
    """Completions that depend on the prompt and its position among all processes' prompts."""
    first = trainer.accelerator.process_index * len(prompt_ids)
    return [
        [
            70 + (sum(ids) * 7 + (first + place) * 13 + at * 5) % 50
            for at in range(2 + (first + place) % 5)
        ]
        for place, ids in enumerate(prompt_ids)
    ]


def main(policy: str, out: str) -> None:
    import torch

    torch.set_num_threads(1)
    Path(out).mkdir(exist_ok=True)
    grpo_step.sample = fixed
    config = scaled(
        run.CONFIG,
        steps=2,
        prompts_per_step=3,
        group_size=4,
        micro_batch=None,
        generation_batch=None,
        advantages="process",
        beta=0.0,
        max_new_tokens=8,
        loss_type="dapo",
    )
    print(run.grpo(config, policy, Path(out), by_token))


if __name__ == "__main__":
    main(*sys.argv[1:])
