"""A GRPO training with colocated vLLM, as a process: python -m tests.engines.colocated POLICY OUT
[STEPS [sleep]]

Transformers scores vLLM's samples with the same weights before the update; OUT/differences.json has
the differences of the tokens' log-probabilities. TRL looks for a package named vllm, and the one
for CPUs has another name: the caller adds a stub with this name (`named`).
"""

import os
import sys
from pathlib import Path
from typing import Any

import tests.helpers.grpo_run as run
from tests.helpers import write_json
from workbench.policies.hf import token_logprobs
from workbench.training import colocate
from workbench.util.config import scaled

CONFIG = scaled(
    run.CONFIG,
    steps=3,
    vllm="colocate",
    vllm_memory=0.1,
    temperature=0.9,
    save_every=1,
    generation_batch=None,
    micro_batch=None,
)


def named(folder: Path) -> Path:
    """A folder for sys.path with the metadata, but not the code, of a package called vllm."""
    listed = folder / "vllm-0.32.0+cpu.dist-info"
    listed.mkdir(parents=True)
    (listed / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
    return folder


def environment(stub: Path) -> dict[str, str]:
    fast = {"TORCHDYNAMO_DISABLE": "1", "VLLM_CPU_CI_ENV": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    return os.environ | fast | {"PYTHONPATH": os.pathsep.join([str(stub), *filter(None, sys.path)])}


def main(policy: str, out: Path, steps: int, sleep: bool = False) -> None:
    found: dict[str, list[float]] = {"differences": [], "of_the_start": []}
    sample = colocate.sample

    def compared(trainer: Any, prompt_ids: Any) -> Any:
        ids, scores = sample(trainer, prompt_ids)
        pairs = list(zip(map(list, prompt_ids), ids, strict=True))
        found["differences"] += differences(scores, scored(trainer, pairs))
        with trainer.model.disable_adapter():
            found["of_the_start"] += differences(scores, scored(trainer, pairs))
        return ids, scores

    colocate.sample = compared
    out.mkdir(parents=True, exist_ok=True)
    status = run.grpo(scaled(CONFIG, steps=steps, vllm_sleep=sleep), policy, out)
    write_json(out / "differences.json", {"status": status, **found})


def differences(scores: Any, others: Any) -> list[float]:
    return [
        abs(a - b)
        for one, other in zip(scores, others, strict=True)
        for a, b in zip(one, other, strict=True)
    ]


def scored(trainer: Any, pairs: list[tuple[list[int], list[int]]]) -> list[tuple[float, ...]]:
    """The trained model's log-probability of every sampled token, at the sampling temperature."""
    import torch

    def divide(module: Any, args: Any, output: Any) -> Any:
        output.logits = output.logits / trainer.temperature
        return output

    hook = trainer.model.register_forward_hook(divide)
    try:
        with torch.no_grad():
            return token_logprobs(trainer.model, trainer.processing_class.pad_token_id, pairs)
    finally:
        hook.remove()


if __name__ == "__main__":
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else CONFIG.steps
    main(sys.argv[1], Path(sys.argv[2]), steps, "sleep" in sys.argv)
