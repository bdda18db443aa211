"""vLLM on a CPU: completions equal transformers', adapters are the named ones, and a judge is
served.

Tests that do not need vLLM are in tests/test_vllm_engine.py.
"""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engines import colocated
from tests.engines.environment import needs
from tests.engines.measured import store
from tests.helpers import read_json, run_python, write_json
from tests.helpers.adapters import adapter_on
from tests.helpers.chi_square import chi_square, next_probabilities
from tests.helpers.credit import weights
from tests.helpers.errors import raises_error
from tests.helpers.served import check_unreadable, listening, serving
from tests.helpers.tiny_model import make_policy
from tests.helpers.waiting import wait_for
from workbench.methods.bench import SCALES, bench
from workbench.policies.generate import Policy, Sampling, generate
from workbench.policies.load import load_policy
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.types import JsonObject, Question

pytestmark = needs("vllm")

# Read at the first import of torch: compiling vLLM's small functions would take longer than running
# them.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

SFT = SCALES["tiny"].policy
ROUNDING = 1e-4
HALF = 0.02  # TRL runs vLLM in 16 bits: the checkpoint's type, or bfloat16 for 32 bits
HEADS = 2  # of size 32: vLLM has no attention for smaller heads on a CPU
LONG = (
    "Tell me more about what the people of this town did when they were young. " * 8
)  # more tokens than a cache block


def asked(count: int) -> list[Question]:
    return bench("tiny").questions("validation")[:count]


def adapted(folder: Path, seed: int, rank: int = 4) -> Path:
    return adapter_on(SFT, folder, seed=seed, r=rank, lora_alpha=2 * rank)


@pytest.fixture(scope="module")
def hf() -> Policy:
    return load_policy(SFT, device="cpu")


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Tests that load another model must run before or after those with this one: vLLM has one
    model per process.
    """
    return load_policy(SFT, engine="vllm")


def furthest(one: Any, other: Any) -> float:
    """The largest difference of log-probabilities between responses with equal ids."""
    assert [r.token_ids for r in one] == [r.token_ids for r in other]
    return max(
        abs(a - b)
        for x, y in zip(one, other, strict=True)
        for a, b in zip(x.logprobs, y.logprobs, strict=True)
    )


def without_logprobs(responses: Any) -> list[Any]:
    return [replace(response, logprobs=()) for response in responses]


def test_samples_depend_on_the_seed_and_not_on_other_questions(
    tmp_path: Path,
) -> None:
    """With a random model, for which every token is possible."""
    random = load_policy(make_policy(tmp_path / "random", heads=HEADS), engine="vllm")
    questions = [
        Question("a", " Where is Ada born"),
        Question("b", " Who"),
        Question("c", " What is Oslo", system=" yes"),
    ]
    how: JsonObject = {"max_new_tokens": 6, "samples": 5, "logprobs": True}
    once = generate(random, questions, seed=3, **how)
    assert [(r.id, r.group, r.sample) for r in once] == [
        (f"{n}/{s}", n, s) for n in "abc" for s in range(5)
    ]
    assert len({r.token_ids for r in once}) == 15
    assert generate(random, questions, seed=3, **how) == once
    assert {r.token_ids for r in generate(random, questions, seed=4, **how)}.isdisjoint(
        {r.token_ids for r in once}
    )
    together = generate(random, questions, seeds=(7, 8, 9), **how)
    alone = generate(random, questions[1:2], seeds=(8,), **how)
    assert [r.token_ids for r in alone] == [r.token_ids for r in together[5:10]] and furthest(
        alone, together[5:10]
    ) < ROUNDING
    assert generate(random, [], max_new_tokens=4) == []


def test_samples_have_the_distribution_of_their_settings(tmp_path: Path) -> None:
    from collections import Counter

    folder = make_policy(tmp_path / "random", heads=HEADS)
    random, plain, how = (
        load_policy(folder, engine="vllm"),
        load_policy(folder, device="cpu"),
        Sampling(1, temperature=0.9, top_p=0.6),
    )
    prompt = [2, 70, 71, 72, 3]
    drawn = random.complete([prompt] * 2000, random.stop_ids, replace(how, seed=1))
    counts = Counter(ids[0] for ids, _ in drawn)
    assert chi_square(counts, next_probabilities(plain.model, prompt, how)) < 4


def test_greedy_responses_equal_transformers(hf: Policy, policy: Policy) -> None:
    how: JsonObject = {"max_new_tokens": 48, "greedy": True, "logprobs": True}
    expected, found = generate(hf, asked(64), **how), generate(policy, asked(64), **how)
    difference = furthest(found, expected)
    assert difference < ROUNDING and without_logprobs(found) == without_logprobs(expected)
    store(
        "vllm",
        {
            "greedy_equal": f"{len(found)} of {len(expected)}",
            "max_logprob_difference": {"tiny policy": difference},
        },
    )


def test_an_adapter_is_applied_and_a_new_one_in_its_folder_is_loaded(tmp_path: Path) -> None:
    """With the same name and path and a cached prefix; then the first adapter again."""
    questions = [Question(f"q{n}", LONG + one.text) for n, one in enumerate(asked(8))] + asked(32)
    how: JsonObject = {"max_new_tokens": 8, "greedy": True, "logprobs": True}
    said: dict[int, Any] = {}
    differences = []
    for seed in (1, 2, 1):
        run = adapted(tmp_path / "run", seed)
        found = generate(load_policy(run, engine="vllm"), questions, **how)
        differences.append(
            furthest(found, generate(load_policy(run, device="cpu"), questions, **how))
        )
        assert seed not in said or furthest(found, said[seed]) < ROUNDING
        said[seed] = found
    base = generate(load_policy(SFT, engine="vllm"), questions, **how)
    assert max(differences) < ROUNDING
    assert (
        len({tuple(r.token_ids for r in responses) for responses in (said[1], said[2], base)}) == 3
    )
    store("vllm", {"max_logprob_difference": {"adapters": max(differences)}})


def test_adapters_that_vllm_cannot_apply_are_refused(tmp_path: Path) -> None:
    dora = adapted(tmp_path / "dora", 1)
    config = read_json(dora / "policy" / "adapter_config.json")
    write_json(dora / "policy" / "adapter_config.json", {**config, "bias": "all"})
    with raises_error("workbench export RUN --merged DIR"):
        load_policy(dora, engine="vllm")


def test_grpo_trains_on_samples_of_a_colocated_vllm(tmp_path: Path) -> None:
    """Three steps: rows are stored, weights change, and log-probabilities are those of the current
    weights, not the initial ones. A run that lost its last step ends with the same rows and
    weights.
    """

    policy, stub = make_policy(tmp_path / "policy", heads=HEADS), colocated.named(tmp_path / "stub")

    def train(out: Path, steps: int) -> JsonObject:
        began = time.perf_counter()
        done = run_python(
            "-m",
            "tests.engines.colocated",
            policy,
            out,
            steps,
            env=colocated.environment(stub),
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return {**read_json(out / "differences.json"), "seconds": time.perf_counter() - began}

    whole = train(tmp_path / "whole", 3)
    rows, metrics = list(iter_feedback(tmp_path / "whole")), metrics_rows(tmp_path / "whole")
    assert whole["status"] == "done"
    assert len(rows) == 48
    assert [row["step"] for row in metrics] == [1, 2, 3]
    assert any(row.response.logprobs for row in rows)
    assert len({row.response.text for row in rows}) > 12
    learnt = weights(tmp_path / "whole")
    moved = max(float(weight.abs().max()) for name, weight in learnt.items() if "lora_B" in name)
    assert moved > 1e-3 and max(whole["differences"]) < HALF < 5 * HALF < max(whole["of_the_start"])
    lost = Path(shutil.copytree(tmp_path / "whole", tmp_path / "lost"))
    for folder in (lost / "checkpoints" / "checkpoint-3", lost / "policy"):
        shutil.rmtree(folder)
    train(lost, 3)
    again = weights(lost)
    assert [row.response for row in iter_feedback(lost)] == [row.response for row in rows]
    assert all(bool((again[name] == weight).all()) for name, weight in learnt.items())
    largest = {
        "max_logprob_difference": max(whole["differences"]),
        "from_the_start": max(whole["of_the_start"]),
    }
    store("vllm", {"colocate": {"steps": 3, **largest, "seconds": round(whole["seconds"], 1)}})


def test_a_served_judge_answers_and_ends_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_CI_ENV", "1")
    began = time.perf_counter()
    with serving(SFT, tmp_path, "--name", "tiny") as (process, ready):
        seconds = time.perf_counter() - began
        check_unreadable(ready)
        store("vllm", {"judge_serve": {"seconds_to_ready": round(seconds, 1)}})
        process.kill()
        process.wait()
        wait_for(lambda: not listening(ready["judge"]), 20)
