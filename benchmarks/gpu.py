"""Measure seconds and memory of GRPO steps on a GPU, for each way of loading and sampling.

    python benchmarks/gpu.py --make Qwen/Qwen2.5-7B --tokenizer FOLDER --policy random-7b
    python benchmarks/gpu.py --policy random-7b --results benchmarks/results/gpu_steps.json

TruthRL trains on the bench `small`, each way in its own process: `plain` (transformers and PEFT),
`unsloth`, and `vllm` (plain, sampled by vLLM in the same process). `--make` writes a model of this
shape with random weights and FOLDER's tokenizer. Its answers do not end, so each has the maximum
length and cost. The first step includes compilation. Memory is the largest amount that PyTorch
allocated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from workbench.experiments.experiment import configured
from workbench.experiments.shape import MODELS, shape_of
from workbench.methods.bench import bench
from workbench.methods.method import training_questions
from workbench.methods.truthrl.method import METHOD
from workbench.runs.folder import read_json, versions
from workbench.training.grpo import train_grpo
from workbench.util.jsonl import iter_rows, write_json

WAYS = ("plain", "unsloth", "vllm")
PHASES = ("seconds", "seconds_generation", "seconds_update", "length")


def make(name: str, tokenizer: str, out: Path) -> None:
    """Write a model with the shape of a public model and random weights in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    words, config = AutoTokenizer.from_pretrained(tokenizer), shape_of(name).config
    config.vocab_size, config.eos_token_id = len(words), words.eos_token_id
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.generation_config = GenerationConfig(
        eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, do_sample=True
    )
    model.save_pretrained(out)
    words.save_pretrained(out)


def child(way: str, given: argparse.Namespace, out: Path) -> None:
    """Train in one way in this process; write the metrics and the peak memory."""
    place = bench("small").with_policy(str(given.policy))
    settings = [
        f"truthrl.{name}={value}"
        for name, value in {
            "steps": given.steps + 1,
            "prompts_per_step": given.prompts,
            "group_size": given.group,
            "max_new_tokens": given.tokens,
            "micro_batch": given.micro,
            "gradient_checkpointing": given.checkpointing,
            "temperature": 1,
            "kinds": "country",
            "vllm": "colocate" if way == "vllm" else "none",
        }.items()
    ]
    config = configured(METHOD, place, overrides=[*settings, *given.set])
    status = train_grpo(
        config.grpo,
        training_questions(config.prompts, place),
        METHOD.grader(config, place.checks),
        str(given.policy),
        out,
        method="truthrl",
        seed=0,
        unsloth=way == "unsloth",
    )
    import torch

    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    write_json(out / "peak.json", {"status": status, "bytes": peak})


def train(way: str, given: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train in one way in its own process; return the seconds of its steps and the peak memory."""
    words = [sys.executable, *sys.argv, "--child", way, str(out)]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    rows = list(iter_rows(out / "metrics.jsonl")) if (out / "metrics.jsonl").exists() else []
    found: dict[str, Any] = {name: [row[name] for row in rows] for name in PHASES}
    peak = read_json(out / "peak.json")
    return {**found, "exit_code": done.returncode, "peak_bytes": peak and peak["bytes"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--make", choices=MODELS)
    parser.add_argument("--tokenizer")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--micro", type=int, default=16)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child[0], given, Path(given.child[1]))
    if given.make:
        return make(given.make, given.tokenizer, given.policy)
    sizes = ("prompts", "group", "tokens", "micro", "checkpointing", "set")
    found = {
        "date": date.today().isoformat(),
        "versions": versions(),
        "policy": given.policy.name,
        **{name: getattr(given, name) for name in sizes},
        "ways": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for way in given.ways:
            found["ways"][way] = train(way, given, Path(folder) / way)
            print(way, json.dumps(found["ways"][way]), flush=True)
            if given.results:
                write_json(given.results, found)


if __name__ == "__main__":
    main()
