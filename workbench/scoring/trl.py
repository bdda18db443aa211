"""The methods' rewards for trainers outside this library: `workbench.trl_reward` for TRL and
Unsloth scripts, and the parts that it shares with `workbench.scoring.verl`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.credit.tokens import words
from workbench.data.record import question_of
from workbench.methods import METHODS, configure_method
from workbench.methods.bench import Bench
from workbench.methods.bench import bench as bench_of
from workbench.policies.generate import as_response
from workbench.runs.store import append_feedback
from workbench.text.sections import opened
from workbench.training.recorder import reason, reward_of
from workbench.training.sampling import grouped, named
from workbench.types import Checks, Feedback, Grade, Question, Response, WorkbenchError
from workbench.util.config import override
from workbench.util.failures import TooManyFailures, too_many

# Columns of a data set that say what is known of a question, all of them optional.
COLUMNS = ("id", "question", "answers", "answer", "title", "passages", "checklist", "kind")


@dataclass(frozen=True)
class Grader:
    """A method's name, what grades by it, and what its judge adds to a question."""

    name: str
    grade: Grade
    recognise: Callable[[Question], Question]


def grader(
    recipe: Any, judge: str | Bench | Checks = "tiny", settings: Sequence[str] = ()
) -> Grader:
    """The method, a name or a config, over that judge: a bench or its name, or `Checks`. A bench
    also brings its settings of a method that is given by name; `settings` are
    "method.field=value".

    Raises:
        WorkbenchError: no such method or setting, or a judge that lacks one of the method's
        checks.
    """
    able = bench_of(judge) if isinstance(judge, str) else judge
    checks = able if isinstance(able, Checks) else able.checks
    name, config = configure_method(recipe)
    if isinstance(recipe, str) and not isinstance(able, Checks):
        config = METHODS[name].configure(able.name)
    config = override(config, name, settings)
    return Grader(
        name, METHODS[name].grader(config, checks), checks.recognise or (lambda question: question)
    )


def asked(prompt: Any, row: Mapping[str, Any]) -> Question:
    """The question of a row's columns; without a `question` it is the last user message of the
    prompt, or the whole prompt.

    Raises:
        WorkbenchError: a column that is not what it has to be.
    """
    row = {name: row[name] for name in COLUMNS if row.get(name) is not None}
    text = row.pop("question", "") or (prompt if isinstance(prompt, str) else last(prompt, "user"))
    if "id" in row:
        identity = str(row["id"])
    else:  # equal only for rows that are equal
        content = json.dumps([text, row], sort_keys=True, default=str)
        identity = hashlib.sha256(content.encode()).hexdigest()[:12]
    try:
        return question_of(row, identity, text)
    except ValueError as error:
        raise WorkbenchError(
            f"a column of the data set cannot be read: {error}: rename it, or correct the data set"
        ) from error


def last(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    """The text of the last message of a role; "" if there is none."""
    contents = [
        message["content"]
        for message in messages
        if message["role"] == role and message.get("content")
    ]
    # a list of parts, as of models that take images
    if contents and not isinstance(contents[-1], str):
        return "".join(part.get("text") or "" for part in contents[-1])
    return contents[-1] if contents else ""


def stop_at(max_failed: float, reasons: Sequence[str], graded: int) -> None:
    """Stop where the responses without a reward, whose `reasons` these are, are too large a
    share of those graded together.

    Raises:
        TooManyFailures: they are.
    """
    if too_many(len(reasons), graded, max_failed):
        raise TooManyFailures(
            f"{len(reasons)} of {graded} completions could not be scored ({reasons[0]}): mend that,"
            " or raise max_failed"
        )


def trl_reward(
    recipe: Any,
    bench: str | Bench | Checks = "tiny",
    *,
    settings: Sequence[str] = (),
    tokenizer: Any = None,
    out: Path | str | None = None,
    max_failed: float = 0.2,
) -> Callable[..., list[float | None]]:
    """A reward function for `GRPOTrainer(reward_funcs=…)`: one number for each completion, None
    where it could not be scored.

    The data set's columns say what is known of a question, all of them optional: `id`,
    `question` (by default the last user message, or the whole prompt), `answers` (or `answer`),
    `title`, `passages` ({title, text} or text), `checklist`, `kind`.

    Args:
        recipe: a method's name, one of `workbench.methods.METHODS`, or its config.
        bench: who checks: a bench or its name, or `Checks` such as
        `workbench.verdicts.checks.judge_checks(judge, search)`. A bench
            also brings its settings of a method that is given by name.
        settings: "method.field=value", as on the command line.
        tokenizer: the policy's. With it, responses are read from the sampled ids and their
        tokens are paid; without it the
            completions' text is taken.
        out: a folder that keeps every response with its feedback, for the inspector; for runs of
        one process.
        max_failed: share of unscored completions in a batch above which training stops.

    Raises:
        WorkbenchError: no such method or setting, or a bench that lacks one of the method's
        checks. When called: too many
            completions that could not be scored.
    """
    made = grader(recipe, bench, settings)
    name = made.name

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        questions = [made.recognise(question) for question in _questions(prompts, columns)]
        state, ids = columns.get("trainer_state"), columns.get("completion_ids")
        step = None if state is None else state.global_step + 1
        responses = _responses(questions, prompts, completions, ids, tokenizer, step)
        feedbacks = made.grade(responses)
        if out is not None:
            append_feedback(out, feedbacks)
        _log(name, feedbacks, columns)
        values = [reward_of(feedback, name) for feedback in feedbacks]
        unscored = (
            reason(feedback, name)
            for feedback, value in zip(feedbacks, values, strict=True)
            if value is None
        )
        stop_at(max_failed, list(unscored), len(values))
        return values

    reward.__name__ = f"workbench_{name}"  # TRL logs rewards under this
    return reward


def _questions(prompts: Sequence[Any], columns: Mapping[str, Any]) -> list[Question]:
    present = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    return [
        asked(prompt, {name: present[name][number] for name in present})
        for number, prompt in enumerate(prompts)
    ]


def _responses(
    questions: Sequence[Question],
    prompts: Sequence[Any],
    completions: Sequence[Any],
    ids: Sequence[Sequence[int]] | None,
    tokenizer: Any,
    step: int | None,
) -> list[Response]:
    """Return the responses in order; those to one question at one step form a group.

    The beginning of a response that the prompt opened is read from a prompt that is text; for a
    conversation it comes from the tokenizer's chat template.
    """
    responses = []
    groups = grouped(questions, step)
    rows = zip(questions, prompts, completions, ids or [()] * len(prompts), groups, strict=True)
    for question, prompt, completion, own, (group, sample) in rows:
        if tokenizer is not None and ids is not None:
            response = as_response(tokenizer, question, own, [tokenizer.eos_token_id])
        else:
            text = completion if isinstance(completion, str) else last(completion, "assistant")
            response = Response("", question, text, offsets=words(text), source="words")
        if isinstance(prompt, str):
            response = replace(response, prefill=opened(prompt))
        responses.append(named(response, group, sample, step))
    return responses


def _log(name: str, feedbacks: Sequence[Feedback], columns: Mapping[str, Any]) -> None:
    """Log metrics by TRL's own functions, if given: the same names in every call, since processes
    are averaged; parts and errors a response.
    """
    rewards = [feedback.rewards[name] for feedback in feedbacks]
    if log_metric := columns.get("log_metric"):
        failed = sum(reward_of(feedback, name) is None for feedback in feedbacks)
        claims = sum(len(feedback.claims) for feedback in feedbacks)
        unplaced = sum(len(reward.unplaced) for reward in rewards)
        log_metric(f"{name}/failed", failed / len(feedbacks))
        log_metric(f"{name}/claims", claims / len(feedbacks))
        log_metric(f"{name}/unplaced", unplaced / max(claims, 1))
    if log_extra := columns.get("log_extra"):
        log_extra(f"{name}_parts", [json.dumps(dict(reward.parts)) for reward in rewards])
        log_extra(f"{name}_error", [reason(feedback, name) for feedback in feedbacks])
