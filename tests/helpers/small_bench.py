"""A bench of a random policy and ten questions, and TruthRL settings for a run of seconds."""

from pathlib import Path
from typing import Any

from tests.helpers.tiny_model import make_policy
from workbench.methods.bench import Bench
from workbench.methods.method import scaled
from workbench.methods.truthrl.config import TruthRL
from workbench.types import JsonObject, Question
from workbench.verdicts.checks import rule_checks

NAMES = "Ada Bo Cy Di Ed Flo Gus Hal Ina Jo".split()
GRPO: JsonObject = {
    "steps": 2,
    "prompts_per_step": 4,
    "group_size": 4,
    "micro_batch": None,
    "generation_batch": None,
}
GRPO |= {"max_new_tokens": 4, "lora_r": 4, "save_every": 1, "learning_rate": 1e-2}
SMALL = scaled(TruthRL(), grpo=GRPO, prompts={"eval_samples": 1})
# the same as overrides
SETTINGS = [f"truthrl.{name}={value}" for name, value in {**GRPO, "eval_samples": 1}.items()]


def all_questions(split: str, kinds: Any = None, lang: str = "en") -> list[Question]:
    if lang == "l2":
        return [
            Question(f"{split}-{name}-l2", f" Ubi est {name}", (" Roma",), meta={"tier": "known"})
            for name in NAMES[:3]
        ]
    asked = [
        Question(f"{split}-{name}", f" Where is {name}", (" Rome",), meta={"tier": "known"})
        for name in NAMES
    ]
    unanswered = Question(f"{split}-open", " Who is Ada", kind="biography")
    return [question for question in [*asked, unanswered] if not kinds or question.kind in kinds]


def make_bench(folder: Path, name: str = "test") -> Bench:
    return Bench(
        name,
        "sft",
        all_questions,
        4,
        "hash",
        rule_checks,
        checkpoints={"sft": str(make_policy(folder))},
    )
