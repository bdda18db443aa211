"""`workbench.score` and `workbench.rescore`: score responses in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, overload

from workbench.credit.tokens import words
from workbench.data.record import question_of
from workbench.methods import reward_fns
from workbench.pipeline import rescore as rescore_with
from workbench.scoring.plan import local_or_world_checks, named_configs, plan
from workbench.types import Checks, Feedback, JsonObject, Question, Response, WorkbenchError
from workbench.verdicts.llm_judge import llm_judge


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
    judge_option: Sequence[str] = (),
    judge_tokens: int | None = None,
    store: str | None = None,
    settings: Sequence[str] = (),
    **about: Any,
) -> Feedback | list[Feedback]:
    """Extract the claims of a response, verify them and compute rewards.

    Args:
        response: a text, a `Response`, or several `Response`s, which are judged in one batch.
        question: the question, if `response` is a text. A `Response` has its own question.
        method: one method's name, several names, or "all". With "all", methods that need a verdict
            that the judge cannot give are left out.
        judge: one of these:

            * "local": rules and the local verifier, a small entailment model
            * "world": the facts of the closed world (generated people and places)
            * the URL of an OpenAI-compatible server
            * "local+URL": the server decides only about claims that the local verifier calls
              correct, or whose language or script it cannot read
            * `Checks`, such as `workbench.local_checks()`
        judge_model: name of the server's model; required with a URL.
        judge_option: fields of each request to the server, as "KEY=VALUE".
        judge_tokens: maximum number of tokens of the server's reply; None: 2048.
        store: name of a passage index, which the judge searches for evidence if the question has no
            passages; only with a URL. None: no search.
        settings: changes of the methods' settings, such as "rlfh.alpha=2".
        about: other fields of the question, if `response` is a text: `answers`, `title`,
            `passages`, `checklist`, `kind`.

    Returns:
        A `Feedback`, or a list of them for several responses. `feedback.rewards[method].tokens` has
        one reward per token. `feedback.response.offsets` has the characters of each token. A failed
        judge call is recorded in the feedback, not raised.

    Raises:
        WorkbenchError: the method, setting or judge does not exist, or the judge cannot give a
            verdict that the method needs.
    """
    if about and not isinstance(response, str):
        raise WorkbenchError(
            f"{next(iter(about))} is an argument for a text: with a Response, set"
            f" response.question.{next(iter(about))} instead"
        )
    # any other text must be a URL; `llm_judge` raises an error if it is not
    url = judge if isinstance(judge, str) and judge not in ("local", "world") else None
    server = llm_judge(url, judge_model, store, None, judge_option, judge_tokens)
    checks = server.checks() if server else judge if isinstance(judge, Checks) else _checks(judge)
    responses = _responses(response, question, about)
    if recognise := checks.recognise:
        responses = [replace(one, question=recognise(one.question)) for one in responses]
    rows = plan(named_configs(method, settings), checks, method == "all")[1].grade()(responses)
    return rows[0] if isinstance(response, str | Response) else rows


# Loading the local verifier takes about a second, and a script may score one answer at a time.
_checks = cache(local_or_world_checks)


def rescore(
    feedback: Feedback, method: str | Sequence[str] = "all", settings: Sequence[str] = ()
) -> Feedback:
    """Compute rewards again from the stored verdicts of a response, without a judge.

        rescore(row, "rlfh", ["rlfh.alpha=2"]).rewards["rlfh"].value

    Args:
        method: one method's name, several, or "all". The result keeps the rewards of other methods.
        settings: changes of the methods' settings, such as "rlfh.alpha=2".

    Raises:
        WorkbenchError: the method or setting does not exist.
    """
    return rescore_with(feedback, reward_fns(named_configs(method, settings)))


def _responses(
    response: str | Response | Iterable[Response], question: str | Question, about: JsonObject
) -> list[Response]:
    if isinstance(response, str):
        if isinstance(question, str):
            try:
                question = question_of(about, "", question)
            except ValueError as error:
                raise WorkbenchError(f"score(…): {error}") from error
        return [Response("", question, response, offsets=words(response), source="words")]
    return [response] if isinstance(response, Response) else list(response)
