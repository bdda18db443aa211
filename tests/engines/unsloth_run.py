"""One process of the tests of Unsloth without a GPU: Unsloth patches TRL irreversibly.

python -m tests.engines.unsloth_run METHOD OUT       a recipe's stages
python -m tests.engines.unsloth_run offline OUT      SFT and DPO, which stay plain
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import tests.helpers.offline_run as run
from tests.helpers.tiny_model import make_policy
from workbench.experiments.experiment import configured, initial_bench, stages_of
from workbench.methods import METHODS
from workbench.methods.bench import Bench, bench
from workbench.methods.method import scaled
from workbench.training.loading import import_unsloth_first
from workbench.training.offline import train_offline
from workbench.training.stage import Job
from workbench.util.jsonl import write_json

GRPO = {
    "steps": 2,
    "prompts_per_step": 8,
    "group_size": 4,
    "lora_r": 4,
    "save_every": 1,
    "temperature": 0.9,
}
# Each recipe's settings, with a different loss for each; ours override Unsloth's defaults.
RECIPES: dict[str, dict[str, Any]] = {
    "truthrl": {
        "grpo": {**GRPO, "loss_type": "dr_grpo", "beta": 0.02, "gradient_checkpointing": True}
    },
    "rlfh": {"trainer": "grpo", "grpo": {**GRPO, "max_new_tokens": 32, "micro_batch": 8}},
    "knowrl": {
        "cold": {"cold_samples": 2, "cold_questions": 8},
        "grpo": {**GRPO, "loss_type": "dapo"},
    },
    "klcf": {
        "rewarded": "judge",
        "prepare": {"samples": 2, "questions": 6},
        "grpo": {**GRPO, "loss_type": "bnpo", "iterations": 2, "max_new_tokens": 48},
    },
}


def place_of(name: str) -> Bench:
    """The tiny bench with some of the questions."""
    tiny, each = bench("tiny"), 80 if name == "klcf" else 10
    return replace(tiny, questions=lambda *args, **kwargs: tiny.questions(*args, **kwargs)[::each])


def config_of(name: str) -> Any:
    return scaled(configured(METHODS[name], place_of(name)), **RECIPES[name])


def train(name: str, out: Path) -> None:
    """Run a recipe's stages like an experiment, without evaluations; then write its trainer's
    arguments.
    """
    import torch

    method, config = METHODS[name], config_of(name)
    place = initial_bench(method, config, place_of(name))
    assert import_unsloth_first()
    folders: dict[str, Path] = {}
    *earlier, last = stages_of(method, config, place, 1)
    for stage in earlier:
        folders[stage.name] = out / "stages" / stage.name
        folders[stage.name].mkdir(parents=True)
        assert stage.run(Job(place.path(place.policy), folders[stage.name], 1, folders)) == "done"
    assert last.run(Job(place.path(place.policy), out, 1, folders)) == "done"
    newest = max(
        out.glob("checkpoints/checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2])
    )
    import trl  # after Unsloth

    arguments = torch.load(newest / "training_args.bin", weights_only=False)
    kept = {
        key: value
        for key, value in vars(arguments).items()
        if isinstance(value, str | int | float | None)
    }
    write_json(out / "arguments.json", {**kept, "trainer": trl.GRPOTrainer.__name__})


def train_on_rows(out: Path) -> None:
    policy = str(make_policy(out / "start"))
    import_unsloth_first()
    train_offline(run.TUNED, run.EXAMPLES, policy, out / "SFT", seed=1)
    train_offline(run.PREFERRED, run.PAIRS, policy, out / "DPO", seed=1)
    print("Unsloth was", "imported" if "unsloth" in sys.modules else "not imported")


if __name__ == "__main__":
    if sys.argv[1] == "offline":
        train_on_rows(Path(sys.argv[2]))
    else:
        train(sys.argv[1], Path(sys.argv[2]))
