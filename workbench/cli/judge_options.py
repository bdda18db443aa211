"""The options of a judge at a URL, which several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.judge.endpoint import TOKENS
from workbench.verdicts.llm_judge import LLMJudge, llm_judge

Command = Callable[..., int]
JudgeModel = Annotated[
    str | None, typer.Option("--judge-model", metavar="NAME", help="The endpoint's model.")
]
StoreName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Index (`workbench index build`) with evidence for rows without passages.",
    ),
]
JudgeCache = Annotated[
    Path | None,
    typer.Option(
        "--judge-cache",
        metavar="FILE",
        help="Cache of the judge's replies; default: a file next to the command's output.",
    ),
]
JudgeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--judge-option",
        metavar="KEY=VALUE",
        help=(
            "Field of each request to the endpoint, such as reasoning_effort=low; VALUE is JSON or"
            " a text, and null removes a field; repeatable."
        ),
    ),
]
JudgeTokens = Annotated[
    int | None,
    typer.Option(
        "--judge-tokens",
        min=1,
        help=f"Maximum tokens of a reply of the endpoint, thoughts included; default: {TOKENS}.",
    ),
]


def _judge(
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=(
                "OpenAI-compatible endpoint of the judge. Its key is read from WORKBENCH_JUDGE_KEY"
                " or, for api.openai.com, OPENAI_API_KEY."
            ),
        ),
    ] = None,
    judge_model: JudgeModel = None,
    store: StoreName = None,
    judge_cache: JudgeCache = None,
    judge_option: JudgeOption = None,
    judge_tokens: JudgeTokens = None,
) -> LLMJudge | None:
    return llm_judge(judge, judge_model, store, judge_cache, judge_option, judge_tokens)


def judge_options(store: bool = True) -> Callable[[Command], Command]:
    """Give a command the options of a judge at a URL in place of its parameter `judge`.

    Args:
        store: with `--store`, for commands whose questions may have no passages.
    """
    options = dict(inspect.signature(_judge, eval_str=True).parameters)
    if not store:
        del options["store"]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> int:
            given = {name: values.pop(name) for name in options}
            return command(judge=_judge(**given), **values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += options.values() if parameter.name == "judge" else [parameter]
        # typer reads the options from the signature
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
