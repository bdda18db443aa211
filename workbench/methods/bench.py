"""Benches: `bench("tiny" | "small" | "paper")` returns policy, questions and checks.

`tiny` is the closed world with its shipped policy and needs nothing from outside. `small` and
`paper` name models on the hub and read questions from a data set or a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from workbench.data import SPLITS, load
from workbench.policies.generate import Policy
from workbench.policies.load import Engine, adapter_folder, check_policy_name, load_policy
from workbench.runs.folder import read_json
from workbench.types import TWO_FACETS, Checks, Question, WorkbenchError
from workbench.verdicts.checks import rule_checks, world_checks
from workbench.verdicts.llm_judge import REPLIES, LLMJudge
from workbench.world import load_world
from workbench.world.questions import SHORT_KINDS, select

# in the repository, not in a wheel
TINY_POLICY = Path(__file__).resolve().parents[2] / "data" / "tiny-policy"
DEFAULT_POLICY = "sft"  # checkpoint that training starts from by default
# in a run's folder: the policy, made by an earlier stage, that its last stage started from
START_FILE = "start.json"
NEW_TOKENS = 2048  # the paper's longest response
LONGEST = 112  # tokens of the tiny policy's longest answers
LONG_KINDS = ("biography", "long_form", TWO_FACETS)
THINK_THEN_BOX = (
    "Reason about the question between <think> and </think>. Then give the final answer in"
    " \\boxed{}. If you are not sure of the answer, write \\boxed{I don't know}."
)


@dataclass(frozen=True)
class Scale:
    """What a bench's trainings start from, a folder or a hub name, how long an answer in an
    evaluation may be at most, and how many tokens a prompt is taken to have where nobody has
    counted."""

    policy: str
    longest: int
    prompt: int


SCALES = {
    "tiny": Scale(str(TINY_POLICY / DEFAULT_POLICY), LONGEST, 128),
    "small": Scale("Qwen/Qwen2.5-0.5B-Instruct", 512, 512),
    "paper": Scale("Qwen/Qwen2.5-7B-Instruct", NEW_TOKENS, 512),
}
NAMES = tuple(SCALES)


@dataclass(frozen=True)
class Bench:
    """A scale to work at. `policy` and `checkpoints` are folders or hub names; `max_new_tokens`
    is for an evaluation.

    The settings of a method at this scale are in its `config.py`. `judge` makes the checks that
    responses are graded by, when they are first asked for: the closed world's own on the tiny
    bench; elsewhere, unless others are given, what rules can tell. `llm_judge` is the language
    model behind them, where there is one.
    """

    name: str
    policy: str
    questions: Callable[..., list[Question]]  # (split, kinds=None, lang="en") -> questions
    max_new_tokens: int
    hash: str  # of the questions: the world's, or the file's
    judge: Callable[[], Checks]
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    long_new_tokens: int = 0  # for questions that ask for a whole text, where that is more
    # How many of the documents that its policies learnt from state what a question asks for; None
    # where nobody has counted.
    shown: Callable[[Question], int | None] = lambda question: None
    llm_judge: LLMJudge | None = None
    # Digest of the questions of these kinds that `hash` does not cover; None if it covers all.
    questions_hash: Callable[[Iterable[str]], str | None] = lambda kinds: None

    @cached_property
    def checks(self) -> Checks:
        return self.judge()

    def with_judge(self, judge: LLMJudge | None) -> Bench:
        """The bench whose responses a language model judges; with None the bench as it is.

        Raises:
            WorkbenchError: the bench has a judge of its own.
        """
        if judge is None:
            return self
        if self.name == "tiny":
            raise WorkbenchError(
                "the tiny bench has an exact judge of its own: leave --judge out, or choose another"
                " --bench"
            )
        passages = (question.passages for split in SPLITS for question in self.questions(split))
        evidence = judge.store is not None or any(passages)
        return replace(self, llm_judge=judge, judge=lambda: judge.checks(evidence))

    def with_cache_dir(self, folder: Path) -> Bench:
        """The bench whose judge keeps its replies in this folder, unless it was told where."""
        if self.llm_judge is None or self.llm_judge.cache:
            return self
        return self.with_judge(replace(self.llm_judge, cache=folder / REPLIES))

    def with_policy(self, policy: str | None) -> Bench:
        """The bench whose trainings start from another policy, a model's folder or hub name;
        with None the bench as it is.

        Raises:
            WorkbenchError: an adapter, which is no whole model.
        """
        if policy is not None and adapter_folder(Path(self.path(policy))):
            raise WorkbenchError(
                f"'{policy}' is an adapter, and training starts from a whole model: name a model's"
                " folder or hub name"
            )
        return self if policy is None else replace(self, policy=policy)

    def with_system_prompt(self, system: str | None) -> Bench:
        """The bench that tells a policy this before each question; with None the bench as it is."""
        if system is None:
            return self

        def questions(*args: Any, **kwargs: Any) -> list[Question]:
            return [
                replace(question, system=system) for question in self.questions(*args, **kwargs)
            ]

        return replace(self, questions=questions)

    def longest(self, questions: Iterable[Question]) -> int:
        """How many tokens an evaluation lets the answers to these questions have."""
        long = any(question.kind in LONG_KINDS for question in questions)
        return max(self.max_new_tokens, self.long_new_tokens) if long else self.max_new_tokens

    def path(self, policy: str) -> str:
        """The folder or hub name that "sft", "base" or any other policy name stands for.

        Raises:
            WorkbenchError: the checkpoint of that name was trained on another world than this
            bench asks about.
        """
        if policy not in self.checkpoints:
            return policy
        path = self.checkpoints[policy]
        check_world(policy, path, self.hash)
        return path

    def base(self, policy: str) -> str | None:
        """What the adapter of a run on this bench goes over; None for other policies."""
        path = Path(self.path(policy))
        # A run's folder says by name what it started from: that still holds where the checkout has
        # moved.
        run = read_json(path / "config.json") or {}
        base = (
            self.path(run["policy"]) if run.get("bench") == self.name and "policy" in run else None
        )
        # Where a stage of the run made what its last one started from, that.
        started = (read_json(path / START_FILE) or {}).get("start")
        return str(path / started) if started else base

    def load(self, policy: str, engine: Engine = "hf") -> Policy:
        """Load a policy by name for generation, as `load_policy` does; a run folder's adapter
        goes over this bench's own policy.
        """
        path = self.path(policy)
        check_policy(policy, path)
        loaded = load_policy(path, base=self.base(policy), engine=engine)
        return replace(loaded, name=policy)


def check_world(name: str, path: str, world_hash: str) -> None:
    """Refuse a built policy whose card, beside its folder, names another world: what it knows is
    true of that one.
    """
    folder = Path(path).parent
    built = (read_json(folder / "card.json") or {}).get("world_hash")
    if built is not None and built != world_hash:
        raise WorkbenchError(
            f"the policy '{name}' in '{folder}' was built on the world {built}, and this is the"
            f" world {world_hash}: delete that folder and build it again with `workbench world"
            f" build --out {folder}`"
        )


def check_policy(name: str, path: str) -> None:
    """Refuse a policy that is not there, before anything is loaded.

    Raises:
        WorkbenchError: no such folder and no possible hub name; for the shipped policy, how to
        build it.
    """
    if Path(path).is_relative_to(TINY_POLICY) and not Path(path).is_dir():
        raise WorkbenchError(
            f"the tiny bench's policy '{name}' is missing: run `workbench world build --out"
            f" {TINY_POLICY}`, or work in a clone of the repository, which has it, with `pip"
            " install -e .` (an installed package does not)"
        )
    check_policy_name(path)


def bench(name: str, questions: str | Path | None = None, checks: Checks | None = None) -> Bench:
    """The bench called `name`; `questions` names the data set or the file that `small` and
    `paper` take theirs from.

    `checks` replaces the bench's own judge, in training and in evaluation: see
    `verdicts.checks.judge_checks` for a language model behind a URL. They are no part of a
    run's identity, which cannot tell one function from another: runs with others need other
    folders. A judge that `with_judge` receives is part of it.

    Raises:
        WorkbenchError: no such bench, or its questions are missing or cannot be read.
    """
    if name == "tiny":
        return _tiny() if checks is None else replace(_tiny(), judge=lambda: checks)
    if name in NAMES:
        return _hub(name, SCALES[name], questions, checks)
    raise WorkbenchError(f"no bench '{name}': choose one of {', '.join(NAMES)}")


@cache
def _tiny() -> Bench:
    world = load_world()

    def questions(
        split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        """Without `kinds`, the short questions that RL trains on; in `ood`, everything that RL
        never meets. Those of two facets only where they are named."""
        own = world.questions(split, kinds or (None if split == "ood" else SHORT_KINDS), lang)
        return (
            [*own, *select(world.two_facets, split, None, lang)]
            if TWO_FACETS in (kinds or ())
            else own
        )

    return Bench(
        name="tiny",
        policy=DEFAULT_POLICY,
        questions=questions,
        max_new_tokens=48,  # room to think; training asks only for short answers
        long_new_tokens=LONGEST,
        shown=world.shown,
        questions_hash=lambda kinds: _two_facets_hash() if TWO_FACETS in kinds else None,
        hash=world.hash,
        judge=lambda: world_checks(world),
        checkpoints={"sft": SCALES["tiny"].policy, "base": str(TINY_POLICY / "base")},
    )


@cache
def _two_facets_hash() -> str:
    return questions_hash(load_world().two_facets)


def _hub(name: str, scale: Scale, source: str | Path | None, checks: Checks | None) -> Bench:
    if source is None:
        raise WorkbenchError(
            f"bench '{name}' has no questions of its own: give --questions NAME|FILE, a data"
            ' set\'s name (`workbench data show`) or a file of {"id", "question", "answers",'
            ' "kind"?}'
        )
    loaded = [replace(question, system=THINK_THEN_BOX) for question in load(source)]

    def questions(
        split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        if lang != "en":
            raise WorkbenchError(
                f"bench '{name}' asks the questions of its file as they are: leave"
                f" lang='{lang}' out"
            )
        return [q for q in loaded if q.meta["split"] == split and (not kinds or q.kind in kinds)]

    return Bench(
        name=name,
        policy=DEFAULT_POLICY,
        questions=questions,
        max_new_tokens=scale.longest,
        hash=questions_hash(loaded),
        judge=lambda: checks or rule_checks(require_box=None),
        checkpoints={"sft": scale.policy, "base": scale.policy.removesuffix("-Instruct")},
    )


def questions_hash(questions: Sequence[Question]) -> str:
    """Return a digest of the questions' contents, part of the identity of a run."""
    digest = hashlib.sha256()
    for question in questions:
        row = {
            **vars(question),
            "passages": [vars(passage) for passage in question.passages],
            "meta": dict(question.meta),
        }
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return digest.hexdigest()
