"""Measure the memory of one training step on a CPU, from outside: `python -m
tests.helpers.memory_run JOB…`.

A job is a JSON object: the model's shape, the trainer and its sizes. For each job, a line has the
largest growth of the process in bytes while the policy was loaded and trained. With `ENVIRONMENT`,
malloc returns freed blocks at once, so that resident memory is used memory.
"""

import ctypes
import gc
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.helpers.tiny_model import byte_tokenizer, random_model
from workbench.policies.load import load_tokenizer
from workbench.training.grpo import train_grpo
from workbench.training.grpo_config import GRPO
from workbench.training.offline import DPO, SFT, train_offline
from workbench.training.ppo import PPO, train_ppo
from workbench.training.reward_model import RewardModel, train_reward_model
from workbench.training.rows import Example, Pair, encode_example
from workbench.training.scorer import Judged, Segment
from workbench.types import Feedback, JsonMapping, JsonObject, Question, Response, Reward
from workbench.util.config import scaled

ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
}
SYLLABLES = "ba da fa ga ka la ma na pa ra sa ta be de fe ge".split()
# 4,096: a random model rarely ends
WORDS = [f" {a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]


def resident(field: str) -> int:
    """A memory field of this process in bytes: VmRSS (now) or VmHWM (peak since the last reset)."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def grown(work: Callable[[], Any]) -> int:
    """The largest growth of the process in bytes during `work`."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def make_model(folder: Path, kind: str, sizes: JsonMapping) -> str:
    """A random checkpoint of this type and shape, with the tokenizer's vocabulary size."""
    tokenizer = byte_tokenizer(WORDS)
    random_model(tokenizer, kind, max_position_embeddings=1024, **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def grade(responses: Sequence[Response]) -> list[Feedback]:
    """An arbitrary reward on the last token."""

    def paid(response: Response) -> Reward:
        value = float(sum(response.token_ids) % 5)
        return Reward(value, tokens=(*([0.0] * (len(response.token_ids) - 1)), value))

    return [Feedback(response, rewards={"m": paid(response)}) for response in responses]


def trained(
    policy: str,
    trainer: str,
    rows: int,
    tokens: int,
    lora_r: int,
    again: bool,
    out: Path,
    steps: int = 1,
) -> None:
    """Train on `rows` rows of `tokens` tokens (of a response; a supervised row has a few more),
    with activations stored or recomputed (`again`).
    """
    questions = asked(rows)
    common: JsonObject = {
        "lora_r": lora_r,
        "lora_alpha": lora_r,
        "steps": steps,
        "learning_rate": 1e-3,
        "gradient_checkpointing": again,
    }
    said = text_of(policy, tokens)
    if trainer == "grpo":
        grpo = scaled(
            GRPO(), **common, prompts_per_step=rows // 2, group_size=2, max_new_tokens=tokens
        )
        train_grpo(grpo, questions, grade, policy, out, method="m", seed=0)
    elif trainer == "ppo":
        ppo = scaled(
            PPO(), **common, prompts_per_step=rows, micro_batch=None, max_new_tokens=tokens
        )
        train_ppo(ppo, questions, grade, policy, out, method="m", seed=0)
    elif trainer == "sft":
        train_offline(
            scaled(SFT(), **common, batch=rows),
            [Example(one, said) for one in questions],
            policy,
            out,
            seed=0,
        )
    elif trainer == "reward_model":
        judged = [
            Judged(one, said, (Segment(0, len(said), number % 2),))
            for number, one in enumerate(questions)
        ]
        train_reward_model(scaled(RewardModel(), **common, batch=rows), judged, policy, out, seed=0)
    else:
        pairs = [Pair(one, said, said + WORDS[-1]) for one in questions]
        train_offline(scaled(DPO(), **common, batch=rows), pairs, policy, out, seed=0)


def asked(rows: int) -> list[Question]:
    return [Question(f"q{number}", WORDS[number] * 2, ("yes",)) for number in range(rows)]


def text_of(policy: str, tokens: int) -> str:
    """Words of at least this number of tokens, by the model type's tokenizer."""
    size = len(load_tokenizer(policy)(WORDS[0] + WORDS[1])["input_ids"]) / 2
    return "".join(WORDS[: math.ceil(tokens / size)])


def lengths(policy: str, tokens: int) -> dict[str, int]:
    """Tokens of a prompt, and of a supervised row with its end."""
    prompt, said = encode_example(load_tokenizer(policy), asked(1)[0], text_of(policy, tokens))
    return {"prompt": len(prompt), "row": len(prompt) + len(said)}


def main() -> None:
    jobs = [json.loads(text) for text in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        # loads each trainer's libraries
        first = {job["trainer"]: {**job, "rows": 2, "tokens": 16} for job in jobs}
        for number, job in enumerate([*first.values(), *jobs]):
            place = Path(folder, str(number))
            policy = make_model(place / "policy", job["kind"], job["sizes"])
            how = (
                job["trainer"],
                job["rows"],
                job["tokens"],
                job["lora_r"],
                job["again"],
                place / "out",
            )
            taken = grown(partial(trained, policy, *how))
            if number >= len(first):
                print(json.dumps({"bytes": taken, **lengths(policy, job["tokens"])}), flush=True)


if __name__ == "__main__":
    main()
