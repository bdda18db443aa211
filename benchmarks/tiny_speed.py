"""How fast the work of the tiny bench is done, part by part, each beside a plain way of doing the same.

    python benchmarks/tiny_speed.py --parts generation --results benchmarks/results/tiny_speed.json

Both ways take turns in one process, so that what else the machine does meets both; what counts is the median of the rounds'
ratios. Parts that were not asked for keep what the results file has of them.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from workbench.bench import bench
from workbench.generate import Policy, Sampling, prompt_ids
from workbench.threads import DEFAULT_THREADS, use_threads


def in_turns(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each way returns in each round, after a first one that does not count."""
    found = [{name: way() for name, way in ways.items()} for _ in range(rounds + 1)][1:]
    return {name: [one[name] for one in found] for name in ways}


def compared(found: dict[str, list[float]], digits: int = 0) -> dict:
    """Medians of rates by name, and of the first one's ratio to the second in each round."""
    first, second = found.values()
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    medians = {name: round(statistics.median(rates), digits) for name, rates in found.items()}
    spread = [round(min(ratios), 2), round(max(ratios), 2)]
    return {**medians, "ratio": round(statistics.median(ratios), 2), "ratio_from_to": spread}


def hf_generate(policy: Policy, prompts: Sequence[list[int]], how: Sampling) -> int:
    """The plain way: transformers' `generate` on batches of 256, padded on the left. Returns how many tokens it made."""
    import torch

    settings = {"do_sample": False} if how.greedy else {"do_sample": True, "top_k": 0, "temperature": 1.0, "top_p": 1.0}
    ordered, tokens, pad = sorted(prompts, key=len, reverse=True), 0, policy.tokenizer.pad_token_id
    for start in range(0, len(ordered), 256):
        batch = ordered[start : start + 256]
        width = len(batch[0])
        ids = torch.tensor([[pad] * (width - len(row)) + row for row in batch])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in batch])
        made = policy.model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=how.max_new_tokens, pad_token_id=pad,
            eos_token_id=list(policy.stop_ids), **settings,
        )[:, width:]  # fmt: skip
        ended = torch.isin(made, torch.tensor(policy.stop_ids)).int()
        tokens += int((ended.cumsum(1) - ended == 0).sum())  # as far as the first end token
    return tokens


def engine(policy: Policy, prompts: Sequence[list[int]], how: Sampling) -> int:
    return sum(len(ids) for ids, _ in policy.complete(list(prompts), policy.stop_ids, how))


def generation(rounds: int, limit: int) -> dict:
    """Tokens per second of evaluations of the shipped policy."""
    tiny = bench("tiny")
    policy = tiny.load("sft")

    def rate(way: Callable[..., int], prompts: Sequence[list[int]], how: Sampling) -> float:
        began = time.perf_counter()
        return way(policy, prompts, how) / (time.perf_counter() - began)

    def measured(kinds: Sequence[str] | None, **sampling: int | bool) -> dict:
        how, questions = Sampling(**{**sampling, "samples": 1}), tiny.questions("test", kinds)[:limit]
        prompts = [ids for ids in prompt_ids(policy.tokenizer, questions) for _ in range(int(sampling.get("samples", 1)))]
        ways = {"engine": lambda: rate(engine, prompts, how), "hf_generate": lambda: rate(hf_generate, prompts, how)}
        return {"prompts": len(prompts), **sampling, **compared(in_turns(ways, rounds))}

    return {
        "unit": "tokens per second",
        "questions, greedy": measured(None, max_new_tokens=tiny.max_new_tokens, greedy=True),
        "questions, 4 samples": measured(None, max_new_tokens=tiny.max_new_tokens, samples=4),
        "biographies, greedy": measured(["biography"], max_new_tokens=tiny.long_new_tokens, greedy=True),
    }


PARTS: dict[str, Callable[[int, int], dict]] = {"generation": generation}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=10_000, help="questions of a part")
    parser.add_argument("--threads", type=int, default=DEFAULT_THREADS)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {
        "date": date.today().isoformat(), "cores": os.cpu_count(), "threads": given.threads, "rounds": given.rounds,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "transformers")}},
    }  # fmt: skip
    results = json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    with use_threads(given.threads):
        for name in given.parts:
            results[name] = {**about, **PARTS[name](given.rounds, given.limit)}
            print(json.dumps({name: results[name]}, indent=1), flush=True)
            if given.results:
                given.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
