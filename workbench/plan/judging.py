"""How often a language model is asked about the responses of a training, and in how many tokens,
before any of them is there.

The prompts are those of `workbench.judge`, filled with texts of assumed lengths; nobody is
asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.checks import OF_CLAIMS
from workbench.judge import render
from workbench.judge.prompts import TASKS
from workbench.plan.phases import MOST
from workbench.recipes.method import JudgeBudget, Method, rolled_out
from workbench.score.estimate import CHARACTERS, PER_CLAIM, PER_LABEL, SHORT
from workbench.train.grpo import GRPO
from workbench.train.ppo import PPO
from workbench.types import WorkbenchError

# Assumed, as nobody knows it before: tokens of a response to each claim in it, and of a claim, a
# question, a final answer and a gold one; passages that a claim is held against (as `judge_checks`
# has them) and their tokens; items of a checklist.
PER_RESPONSE, CLAIM, QUESTION, ANSWER = 24, 12, 24, 8
PASSAGES, PASSAGE, ITEMS = 5, 150, 10
# inputs of a prompt that are several texts
LISTS = frozenset({"passages", "claims", "items", "answers"})
ASSUMED = (
    f"assumed, where a language model judges: {CHARACTERS} characters a token; questions of"
    f" {QUESTION} tokens, answers of {ANSWER}, claims of {CLAIM}, {PASSAGES} passages of {PASSAGE}"
    f" to a claim, checklists of {ITEMS} items; no two prompts are the same, none is asked again,"
    " every response is as long as it may be"
)
# a prompt's inputs: how many there are of each, and of how many tokens each is
Texts = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Asked:
    """What a judge is asked."""

    requests: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def __add__(self, other: Asked) -> Asked:
        return Asked(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )

    def times(self, count: float) -> Asked:
        return Asked(self.requests * count, self.tokens_in * count, self.tokens_out * count)

    def told(self) -> dict[str, int]:
        return {name: round(value) for name, value in vars(self).items()}


def judging(
    method: Method,
    config: Any,
    used: Mapping[str, Any],
    claims: int | None = None,
    questions: int | None = None,
) -> dict[str, Any]:
    """What the judge of a training is asked, stage by stage, a step and in all; `claims` are
    those of a response, by default as many as its length lets expect; `questions` is how many
    there are to train on, where somebody knows.

    Raises:
        WorkbenchError: numbers that cannot be.
    """
    _check(claims, questions)
    stages = [_stage(one, claims, questions) for one in askings(method, config, used)]
    known = [one["all"] for one in stages if one["all"] is not None]
    step = next((one["a_response"].times(one["a_step"]) for one in stages if one["a_step"]), None)
    return {
        "stages": [_told(one) for one in stages],
        "per_step": step.told() if step else None,
        "per_run": sum(known, Asked()).told(),
        "uncounted": [one["stage"] for one in stages if one["all"] is None],
        "assumed": ASSUMED,
    }


def askings(method: Method, config: Any, used: Mapping[str, Any]) -> Sequence[JudgeBudget]:
    """What a method says of itself, else the rollouts of its parts by reinforcement."""
    if (judged := method.training(config).judged) is not None:
        return judged
    checks = method.checks(config)
    return [
        rolled_out(path, part, checks)
        for path, part in used.items()
        if isinstance(part, GRPO | PPO)
    ]


def asked(checks: Collection[str], response: int, claims: int) -> Asked:
    """About one response of so many tokens and claims, by checks of these names."""
    found = (
        _one(task, texts).times(times)
        for task, texts, times in _prompts(frozenset(checks), response, claims)
    )
    return sum(found, Asked())


def expected_claims(response: int) -> int:
    return -(-response // PER_RESPONSE)


def _check(claims: int | None, questions: int | None) -> None:
    for name, value, least in (("claims", claims, 0), ("questions", questions, 1)):
        if value is not None and not least <= value <= MOST:
            raise WorkbenchError(
                f"{name} is {value}: it must be a whole number from {least} to {MOST:,}"
            )


def _stage(one: JudgeBudget, claims: int | None, questions: int | None) -> dict[str, Any]:
    count = expected_claims(one.new) if claims is None else claims
    each, responses = asked(one.checks, one.new, count), one.responses(questions)
    if not each.requests:
        responses = responses or 0  # however many they are, nobody is asked about them
    return {
        "stage": one.stage,
        "responses": responses,
        "tokens": one.new,
        "claims": count,
        "a_response": each,
        "a_step": one.samples * (one.questions or 0) if one.steps else 0,
        "all": None if responses is None else each.times(responses),
    }


def _told(stage: Mapping[str, Any]) -> dict[str, Any]:
    whole = stage["all"].told() if stage["all"] else dict.fromkeys(Asked().told())
    return {
        **{name: stage[name] for name in ("stage", "responses", "tokens", "claims")},
        "a_response": stage["a_response"].told(),
        **whole,
    }


def _prompts(
    checks: frozenset[str], response: int, claims: int
) -> Iterator[tuple[str, Texts, int]]:
    """Task and inputs of each prompt about a response, and how often it is asked with others in
    their place.
    """
    question, whole, said = (
        {"question": (1, QUESTION)},
        {"response": (1, response)},
        {"claims": (claims, CLAIM)},
    )
    gold = {"answers": (1, ANSWER)}
    if "single_pass" in checks:
        yield "single_pass", {**question, **whole}, 1
    elif OF_CLAIMS & checks:
        yield "extract", {**question, **whole}, 1
    if "fact" in checks and claims:
        yield "verify", {**question, "passages": (PASSAGES, PASSAGE), "claims": (1, CLAIM)}, claims
        yield "inform", {**question, **whole, **said}, 1
    if "outcome" in checks:
        yield "outcome", {**question, **gold, "response": (1, ANSWER)}, 1
    if "checklist" in checks:
        yield "checklist", {**question, **whole, "items": (ITEMS, CLAIM)}, 1
    if "claim_checklist" in checks and claims:
        yield "checklist", {**question, "response": (1, ITEMS * CLAIM), "items": (claims, CLAIM)}, 1
    if "reasoning" in checks:
        yield "reasoning", {**question, **gold, **whole}, 1


def _one(task: str, texts: Texts) -> Asked:
    """A prompt and its reply: the template, what stands around each text, and the texts. None of
    them is written out.
    """
    bare = _framed(task, texts)
    around = bare + sum(
        (count - 1) * (_framed(task, texts, name) - bare)
        for name, (count, _) in texts.items()
        if count > 1
    )
    # one character is there already
    within = sum(count * (CHARACTERS * tokens - 1) for count, tokens in texts.values())
    return Asked(1, (around + within) / CHARACTERS, _reply(task, texts))


def _framed(task: str, texts: Texts, twice: str = "") -> int:
    """Characters of a prompt whose every text is a single one; the input `twice` is there two
    times.
    """
    assert set(texts) <= {name.rstrip("?") for name in TASKS[task]}, (task, texts)
    given: dict[str, Any] = {
        name: ["x"] * (1 + (name == twice)) if name in LISTS else "x" for name in texts
    }
    return len(render(task, **given).text)


def _reply(task: str, texts: Texts) -> float:
    """As `workbench.score.estimate` takes it of a prompt that is there."""
    if task in ("extract", "single_pass"):
        return SHORT + PER_CLAIM * texts["response"][1]
    labels = sum(texts[name][0] for name in ("claims", "items") if name in texts)
    return SHORT + PER_LABEL * labels if task in ("inform", "checklist") else SHORT
