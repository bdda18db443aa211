"""`workbench.score` and `workbench.rescore`: score responses in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, overload

from workbench.credit.tokens import words
from workbench.data.record import question_of
from workbench.methods import METHODS, checks_needed, method_configs, reward_fns, sections_read
from workbench.pipeline import assemble
from workbench.pipeline import rescore as rescore_with
from workbench.types import Checks, Feedback, Question, Response, WorkbenchError
from workbench.verdicts.checks import local_checks, world_checks
from workbench.verdicts.llm_judge import llm_judge
from workbench.world import load_world


@overload
def score(response: str | Response, question: str | Question = "", **options: Any) -> Feedback: ...


@overload
def score(
    response: Iterable[Response], question: str | Question = "", **options: Any
) -> list[Feedback]: ...


def score(
    response: str | Response | Iterable[Response],
    question: str | Question = "",
    *,
    method: str | Sequence[str] = "all",
    judge: str | Checks = "local",
    judge_model: str | None = None,
    store: str | None = None,
    settings: Sequence[str] = (),
    **about: Any,
) -> Feedback | list[Feedback]:
    """Extract the claims of a response, verify them and compute rewards, without any file.

    Args:
        response: a text, a `Response`, or several `Response`s, which are judged in one batch.
        question: the question that a text answers.
        method: one method, several, or "all": those whose checks the judge has.
        judge: "local" (rules and the local verifier), "world" (the closed world), the URL of an
            OpenAI-compatible server, or `Checks`.
        judge_model: name of the server's model.
        store: index of passages for the server's claims, where a question has none.
        settings: "method.field=value", as `--set` on the command line.
        about: what else is known about the question of a text: `answers`, `title`, `passages`,
            `checklist`, `kind`.

    Returns:
        A `Feedback` for each response. `feedback.rewards[method].tokens` has one number for each
        token of `feedback.response.offsets`.

    Raises:
        WorkbenchError: no such method, setting or judge, or a judge without the checks of the
            method. A judge that fails is a failure on its row, not an error.
    """
    checks = _checks(judge, judge_model, store)
    responses = _responses(response, question, about)
    if checks.recognise:
        recognise = checks.recognise
        responses = [replace(one, question=recognise(one.question)) for one in responses]
    names = METHODS if method == "all" else (method,) if isinstance(method, str) else method
    configs = method_configs(names, settings)
    if method == "all":
        able = {*checks.verify, *(["single_pass"] if checks.single_pass else [])}
        configs = {
            name: config
            for name, config in configs.items()
            if able.issuperset(checks_needed({name: config}))
        }
    grade = assemble(checks, checks_needed(configs), reward_fns(configs), sections_read(configs))
    rows = grade(responses)
    return rows[0] if isinstance(response, str | Response) else rows


def rescore(
    feedback: Feedback, method: str | Sequence[str] = "all", settings: Sequence[str] = ()
) -> Feedback:
    """Compute rewards again from the stored verdicts; no judge is asked.

        rescore(row, "rlfh", ["rlfh.alpha=2"]).rewards["rlfh"].value

    Args:
        method: one method, several, or "all"; the rewards of other methods stay.
        settings: "method.field=value".

    Raises:
        WorkbenchError: no such method or setting.
    """
    names = METHODS if method == "all" else (method,) if isinstance(method, str) else method
    return rescore_with(feedback, reward_fns(method_configs(names, settings)))


def _checks(judge: str | Checks, model: str | None, store: str | None) -> Checks:
    if isinstance(judge, Checks):
        return judge
    if judge == "local":
        return local_checks()
    if judge == "world":
        return world_checks(load_world())
    asked = llm_judge(judge, model, store)
    assert asked is not None
    return asked.checks()


def _responses(
    response: str | Response | Iterable[Response], question: str | Question, about: dict[str, Any]
) -> list[Response]:
    if isinstance(response, str):
        if isinstance(question, str):
            try:
                question = question_of(about, "", question)
            except ValueError as error:
                raise WorkbenchError(f"score(…): {error}") from error
        return [Response("", question, response, offsets=words(response), source="words")]
    return [response] if isinstance(response, Response) else list(response)
