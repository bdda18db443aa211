"""The methods' graders as a reward function for anyone's own TRL or Unsloth script:
`workbench.trl_reward`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.answers.sections import opened
from workbench.bench import Bench
from workbench.checks import Checks
from workbench.credit.tokens import words
from workbench.generate import as_response
from workbench.integrations.grading import COLUMNS, asked, grader, last, stop_at
from workbench.store import append_feedback
from workbench.train.record import reason, reward_of
from workbench.train.sampling import grouped, named
from workbench.types import Feedback, Question, Response


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
        recipe: a method's name, one of `workbench.recipes.METHODS`, or its config.
        bench: who checks: a bench or its name, or `Checks` such as
        `workbench.checks.judge_checks(judge, search)`. A bench
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
        state = columns.get("trainer_state")
        step = None if state is None else state.global_step + 1
        ids = columns.get("completion_ids")
        feedbacks = made.grade(_responses(questions, prompts, completions, ids, tokenizer, step))
        if out is not None:
            append_feedback(out, feedbacks)
        _log(name, feedbacks, columns)
        values = [reward_of(feedback, name) for feedback in feedbacks]
        reasons = [reason(one, name) for one in feedbacks if reward_of(one, name) is None]
        stop_at(max_failed, reasons, len(values))
        return values

    reward.__name__ = f"workbench_{name}"  # TRL logs rewards under this
    return reward


def _questions(prompts: Sequence[Any], columns: Mapping[str, Any]) -> list[Question]:
    present = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    return [
        asked(prompt, {name: column[number] for name, column in present.items()})
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
    """Responses in order, all of a question at its step in one group.

    What the prompt opened is read from the prompt where it is a text, and from the tokenizer's
    chat template where TRL is given a conversation.
    """
    responses = []
    places = zip(questions, prompts, completions, grouped(questions, step), strict=True)
    for number, (question, prompt, completion, (group, sample)) in enumerate(places):
        if tokenizer is not None and ids is not None:
            response = as_response(tokenizer, question, ids[number], [tokenizer.eos_token_id])
        else:
            text = completion if isinstance(completion, str) else last(completion, "assistant")
            response = Response("", question, text, offsets=words(text), source="words")
        if isinstance(prompt, str):
            response = replace(response, prefill=opened(prompt))
        responses.append(named(response, group, sample, step))
    return responses


def _log(name: str, feedbacks: Sequence[Feedback], columns: Mapping[str, Any]) -> None:
    """Tell TRL, where it listens: metrics of the same names in every call, as processes are
    averaged; parts and errors.
    """
    if log_metric := columns.get("log_metric"):
        count, claims = len(feedbacks), sum(len(feedback.claims) for feedback in feedbacks)
        unplaced = sum(len(feedback.rewards[name].unplaced) for feedback in feedbacks)
        log_metric(
            f"{name}/failed",
            sum(reward_of(feedback, name) is None for feedback in feedbacks) / count,
        )
        log_metric(f"{name}/claims", claims / count)
        log_metric(f"{name}/unplaced", unplaced / max(claims, 1))
    if log_extra := columns.get("log_extra"):
        log_extra(
            f"{name}_parts",
            [json.dumps(dict(feedback.rewards[name].parts)) for feedback in feedbacks],
        )
        log_extra(f"{name}_error", [reason(feedback, name) for feedback in feedbacks])
