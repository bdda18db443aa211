"""GRPO steps on a GPU by each way of loading and sampling, beside what `workbench plan` computes.

    python benchmarks/gpu.py --make 7b --tokenizer FOLDER --policy random-7b
    python benchmarks/gpu.py --policy random-7b --results benchmarks/results/gpu_steps.json

TruthRL on the bench `small`, each way in a process of its own: `plain` (transformers and PEFT),
`unsloth`, and `vllm` (plain, sampled by vLLM in the same process). `--make` writes a model of
Qwen2.5's shape with random weights: its answers have no end, so that each has all of its
`max_new_tokens` tokens, which is the most that a step can cost. The first step is left out, since
kernels are compiled in it. Memory is the largest amount that PyTorch allocated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.abc import MetaPathFinder
from pathlib import Path
from statistics import median
from typing import Any

WAYS = {"plain": [], "unsloth": [], "vllm": ["--set", "truthrl.vllm=colocate"]}
PHASES = ("seconds", "seconds_generation", "seconds_update", "length")
SHAPES = {
    "0.5b": (896, 4864, 24, 14, 2),
    "1.5b": (1536, 8960, 28, 12, 2),
    "7b": (3584, 18944, 28, 28, 4),
}


def make(size: str, tokenizer: str, out: Path) -> None:
    """Write a model of Qwen2.5's shape with random weights in bfloat16."""
    import torch
    from transformers import AutoTokenizer, GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    hidden, inner, layers, heads, keys = SHAPES[size]
    words = AutoTokenizer.from_pretrained(tokenizer)
    end = words.eos_token_id
    config = Qwen2Config(
        vocab_size=151_936,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys,
        max_position_embeddings=32_768,
        tie_word_embeddings=size != "7b",
        eos_token_id=end,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=end, pad_token_id=words.pad_token_id, do_sample=True
    )
    model.save_pretrained(out)
    words.save_pretrained(out)


class Without(MetaPathFinder):
    """Hides Unsloth, which a training otherwise uses where it is installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == "unsloth":
            raise ModuleNotFoundError(name)


def child(way: str, words: list[str]) -> None:
    """Run a command of the workbench in this process, and print the peak of the GPU's memory."""
    import torch

    if way == "plain":
        sys.meta_path.insert(0, Without())

    from workbench.cli import main

    try:
        main(words)
    except SystemExit as ended:
        if ended.code:
            raise
    on_gpu = torch.cuda.is_available()
    print(json.dumps({"peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None}))


def train(way: str, given: argparse.Namespace, out: Path) -> dict[str, Any]:
    settings = [
        f"prompts_per_step={given.prompts}",
        f"group_size={given.group}",
        f"max_new_tokens={given.tokens}",
        f"micro_batch={given.micro}",
        f"gradient_checkpointing={'yes' if given.checkpointing else 'no'}",
        "eval_samples=0",
        "eval_kinds=capital",
        "kinds=country",
        "temperature=1",
        *given.set,
    ]
    sets = [word for one in settings for word in ("--set", f"truthrl.{one}")]
    words = ["train", "truthrl", "--bench", "small", "--policy", str(given.policy), *sets]
    words += ["--steps", str(given.steps + 1), "--out", str(out), *WAYS[way]]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps([way, words])],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )
    rows = [json.loads(line) for line in (out / "metrics.jsonl").open()] if out.exists() else []
    told = {
        name: median(row[name] for row in rows[1:])
        for name in PHASES
        if len(rows) > 1 and rows[1].get(name) is not None
    }
    told["minutes_in_all"] = round((time.monotonic() - began) / 60, 2)
    if done.returncode:
        return {**told, "failed": done.returncode}
    return told | json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--make", choices=SHAPES)
    parser.add_argument("--tokenizer")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--micro", type=int, default=16)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        return child(*json.loads(given.child))
    if not given.policy:
        parser.error("name a folder or hub name by --policy")
    if given.make:
        return make(given.make, given.tokenizer, given.policy)
    from workbench.runs.folder import versions

    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in given.ways:
            measured[way] = train(way, given, Path(folder) / way)
            print(way, json.dumps(measured[way]), flush=True)
    if given.results:
        sizes = ("prompts", "group", "tokens", "micro", "checkpointing", "set")
        about = {"date": date.today().isoformat(), "versions": versions()}
        about |= {"policy": given.policy.name, **{name: getattr(given, name) for name in sizes}}
        given.results.write_text(json.dumps({**about, "steps": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
