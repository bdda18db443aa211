"""The one dial: `bench("tiny" | "small" | "paper")` -> policy, questions, sizes and the recipes' settings at that scale.

`tiny` is the closed world with its shipped policy and needs nothing from outside. `small` and `paper` name models on the
hub and read questions from a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.types import Grade, Question, RewardFn, WorkbenchError

if TYPE_CHECKING:
    from workbench.generate import Policy

NAMES = ("tiny", "small", "paper")
TINY_POLICY = Path(__file__).resolve().parent.parent / "data" / "tiny-policy"  # in the repository, not in a wheel
NEW_TOKENS = 2048  # the paper's longest response
THINK_THEN_BOX = (
    "Reason about the question between <think> and </think>. Then give the final answer in \\boxed{}. "
    "If you are not sure of the answer, write \\boxed{I don't know}."
)

# *(ours)*, for 1M parameters on two CPU cores; tuned on the validation split.
TINY_GRPO: Mapping[str, Any] = {
    "steps": 35,
    "prompts_per_step": 64,
    "group_size": 8,
    "learning_rate": 4e-4,
    "schedule": "linear",
    "beta": 0.0,
    "max_new_tokens": 12,
    "lora_r": 16,
    "lora_alpha": 32,
    "micro_batch": None,
    "generation_batch": None,
    "save_every": 5,
}


@dataclass(frozen=True)
class Bench:
    """A scale to work at. `policy` and `checkpoints` are folders or hub names; `overrides[recipe]` changes its config."""

    name: str
    policy: str
    questions: Callable[..., list[Question]]  # (split, kinds=None, lang="en") -> questions
    max_new_tokens: int
    hash: str  # of the questions: the world's, or the file's
    require_box: bool = False
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def grade(self, rewards: Mapping[str, RewardFn] | None = None) -> Grade:
        """Grade by outcome, paying `rewards` (none of them for an evaluation)."""
        from workbench.grade import grade
        from workbench.verify import outcome

        return grade([outcome(require_box=self.require_box)], rewards or {})

    def path(self, policy: str) -> str:
        """The folder or hub name that "sft", "base" or any other policy name stands for.

        Raises:
            WorkbenchError: the checkpoint of that name was trained on another world than this bench asks about.
        """
        if policy not in self.checkpoints:
            return policy
        path = self.checkpoints[policy]
        check_world(policy, path, self.hash)
        return path

    def load(self, policy: str) -> Policy:
        """Load a policy by name for generation; a run folder's adapter goes over this bench's own policy."""
        from workbench.generate import load_policy
        from workbench.train.run import read_json

        path = self.path(policy)
        check_policy(policy, path)
        # A run's folder says by name what it started from: that still holds where the checkout has moved.
        run = read_json(Path(path) / "config.json") or {}
        base = self.path(run["policy"]) if run.get("bench") == self.name and "policy" in run else None
        return replace(load_policy(path, base=base), name=policy)


def check_world(name: str, path: str, world_hash: str) -> None:
    """Refuse a built policy whose card, beside its folder, names another world: what it knows is true of that one."""
    from workbench.train.run import read_json

    folder = Path(path).parent
    built = (read_json(folder / "card.json") or {}).get("world_hash")
    if built is not None and built != world_hash:
        raise WorkbenchError(
            f"the policy '{name}' in '{folder}' was built on the world {built}, and this is the world {world_hash}: "
            f"delete that folder and build it again with `workbench world build --out {folder}`"
        )


def check_policy(name: str, path: str) -> None:
    """Refuse a policy that is not there, before anything is loaded.

    Raises:
        WorkbenchError: no such folder and no possible hub name; for the shipped policy, how to build it.
    """
    from workbench.generate import check_policy_name

    if Path(path).is_relative_to(TINY_POLICY) and not Path(path).is_dir():
        raise WorkbenchError(
            f"the tiny bench's policy '{name}' is missing: run `workbench world build --out {TINY_POLICY}`, or work in a clone "
            "of the repository, which has it, with `pip install -e .` (an installed package does not)"
        )
    check_policy_name(path)


def bench(name: str, questions: Path | None = None) -> Bench:
    """The bench called `name`; `questions` is the JSONL file that `small` and `paper` take their questions from.

    Raises:
        WorkbenchError: no such bench, or its questions are missing or cannot be read.
    """
    if name == "tiny":
        return _tiny()
    if name == "small":
        return _hub("small", "Qwen/Qwen2.5-0.5B-Instruct", questions, {"prompts_per_step": 16, "max_new_tokens": 512})
    if name == "paper":
        return _hub("paper", "Qwen/Qwen2.5-7B-Instruct", questions, {})
    raise WorkbenchError(f"no bench '{name}': choose one of {', '.join(NAMES)}")


@cache
def _tiny() -> Bench:
    from workbench.world import load_world
    from workbench.world.questions import SHORT_KINDS

    world = load_world()

    def questions(split: str, kinds: Sequence[str] | None = None, lang: str = "en") -> list[Question]:
        """Without `kinds`, the short questions that RL trains on; in `ood`, everything that RL never meets."""
        return world.questions(split, kinds or (None if split == "ood" else SHORT_KINDS), lang)

    return Bench(
        name="tiny",
        policy="sft",
        questions=questions,
        max_new_tokens=48,  # room to think; training asks only for short answers
        hash=world.hash,
        checkpoints={"sft": str(TINY_POLICY / "sft"), "base": str(TINY_POLICY / "base")},
        overrides={"truthrl": TINY_GRPO},
    )


def _hub(name: str, model: str, file: Path | None, overrides: Mapping[str, Any]) -> Bench:
    if file is None:
        raise WorkbenchError(
            f"bench '{name}' has no questions of its own: give --questions FILE, "
            'a JSONL of {"id", "question", "answers", "kind"?}'
        )
    loaded = read_questions(file)

    def questions(split: str, kinds: Sequence[str] | None = None, lang: str = "en") -> list[Question]:
        if lang != "en":
            raise WorkbenchError(f"bench '{name}' asks the questions of its file as they are: leave lang='{lang}' out")
        return [q for q in loaded if q.meta["split"] == split and (not kinds or q.kind in kinds)]

    return Bench(
        name=name,
        policy="sft",
        questions=questions,
        max_new_tokens=int(overrides.get("max_new_tokens", NEW_TOKENS)),
        hash=hashlib.sha256(file.read_bytes()).hexdigest(),
        require_box=True,
        checkpoints={"sft": model, "base": model.removesuffix("-Instruct")},
        overrides={"truthrl": overrides},
    )


def read_questions(file: Path) -> list[Question]:
    """Questions of a JSONL file `{id, question, answers, kind?}`, each with its split in `meta`.

    Raises:
        WorkbenchError: the file or one of its lines cannot be used; the line is named.
    """
    try:
        lines = file.read_bytes().split(b"\n")  # at no other end of line: JSON strings may hold U+2028, U+0085, …
    except OSError as error:
        raise WorkbenchError(f"cannot read questions file '{file}': {error.strerror}") from error
    questions: dict[str, Question] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            row = json.loads(line.decode())
            identity, text, answers = str(row["id"]), str(row["question"]), row["answers"]
        except (ValueError, TypeError, KeyError) as error:
            raise WorkbenchError(f'{where}: not an object with "id", "question" and "answers": {error!r}') from error
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            raise WorkbenchError(f'{where}: "answers" must be a list of strings')
        if identity in questions:
            raise WorkbenchError(f"{where}: id '{identity}' occurs twice: ids must be unique")
        questions[identity] = Question(
            id=identity,
            text=text,
            answers=tuple(answers),
            kind=str(row.get("kind", "single")),
            system=THINK_THEN_BOX,
            meta={"split": split_of(identity)},
        )
    return list(questions.values())


def split_of(identity: str) -> str:
    """80 % rl, 10 % validation, 10 % test, by a hash of the id: the same in every run, whatever else is in the file."""
    bucket = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big") % 10
    return {8: "validation", 9: "test"}.get(bucket, "rl")
