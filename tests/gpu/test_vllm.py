"""On a GPU: vLLM's completions equal transformers' within bfloat16, and it serves a judge."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import log_python, read_json
from tests.helpers.adapters import adapter_on
from tests.helpers.served import check_unreadable, serving
from tests.helpers.tiny_model import make_policy
from workbench.methods.bench import SCALES, bench
from workbench.policies.generate import generate
from workbench.policies.load import load_policy

pytestmark = [pytest.mark.gpu]
pytest.importorskip("vllm", reason="vLLM is not installed")
SFT = SCALES["tiny"].policy
CLOSE = 0.05  # of log-probabilities in bfloat16, on average
HOW: dict[str, Any] = {"max_new_tokens": 24, "greedy": True, "logprobs": True}


def agreement(one: Any, other: Any) -> tuple[float, float]:
    """The share of equal answers, and their mean difference of log-probabilities."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.token_ids == b.token_ids]
    gaps = [abs(x - y) for a, b in pairs for x, y in zip(a.logprobs, b.logprobs, strict=True)]
    share, gap = len(pairs) / len(one), sum(gaps) / len(gaps)
    print(f"{share:.3f} equal answers, log-probabilities {gap:.4f} apart on average")
    return share, gap


def test_greedy_answers_equal_transformers() -> None:
    questions = bench("tiny").questions("validation")[:128]
    share, gap = agreement(
        generate(load_policy(SFT, engine="vllm"), questions, **HOW),
        generate(load_policy(SFT), questions, **HOW),
    )
    assert share >= 0.95 and gap < CLOSE


def test_an_adapter_is_applied(tmp_path: Path) -> None:
    run = adapter_on(SFT, tmp_path / "run", seed=1, r=4, lora_alpha=8)
    questions = bench("tiny").questions("validation")[:128]
    found = generate(load_policy(run, engine="vllm"), questions, **HOW)
    share, gap = agreement(found, generate(load_policy(run), questions, **HOW))
    base = generate(load_policy(SFT), questions, **HOW)
    assert share >= 0.9 and gap < CLOSE
    assert agreement(found, base)[0] < share


@pytest.mark.parametrize("sleep", [False, True])
def test_grpo_trains_on_samples_of_a_colocated_vllm(tmp_path: Path, sleep: bool) -> None:
    """Samples have the log-probabilities of the current weights, not of the initial ones."""
    policy, out = make_policy(tmp_path / "policy", heads=2), tmp_path / "run"
    words = ["-m", "tests.engines.colocated", policy, out, 3, *["sleep"] * sleep]
    log_python(tmp_path / "log", *words, timeout=540)
    found = read_json(out / "differences.json")
    assert found and found["status"] == "done"
    mean, start = (sum(found[name]) / len(found[name]) for name in ("differences", "of_the_start"))
    print(f"log-probabilities {mean:.4f} apart, {start:.4f} from those of the start")
    assert mean < CLOSE / 10 and mean < start / 5


def test_a_served_judge_answers_and_ends_with_its_command(tmp_path: Path) -> None:
    with serving(SFT, tmp_path, "--name", "tiny", "--gpu-memory", "0.1") as (_, ready):
        check_unreadable(ready)
