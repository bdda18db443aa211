"""Command-line options that name a judge, for the commands that need one."""

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.judge.endpoint import TOKENS
from workbench.verdicts.llm_judge import llm_judge, named_judge

Command = Callable[..., int]
JudgeURL = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="OpenAI-compatible endpoint of the judge. Its key is read from WORKBENCH_JUDGE_KEY or,"
        " for api.openai.com, OPENAI_API_KEY.",
    ),
]
LocalOrURL = Annotated[
    str | None,
    typer.Option(
        metavar="local|URL|local+URL",
        help="The local verifier, an OpenAI-compatible endpoint, or both: the endpoint then judges"
        " the claims that the verifier calls correct, or whose language or script it cannot"
        " read. The key is read from WORKBENCH_JUDGE_KEY"
        " or, for api.openai.com, OPENAI_API_KEY.",
    ),
]
VerifierName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Model of the judge local: a `workbench verifier` folder, or an NLI classifier.",
    ),
]
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
        metavar="KEY=VALUE",
        help="Field of each request to the endpoint, such as reasoning_effort=low; VALUE is JSON or"
        " a text, and null removes a field; repeatable.",
    ),
]
JudgeTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Maximum tokens of a reply of the endpoint, thoughts included; default: {TOKENS}.",
    ),
]


# in the order of the arguments of `named_judge`
OPTIONS: dict[str, Any] = {
    "judge": JudgeURL,
    "judge_model": JudgeModel,
    "store": StoreName,
    "judge_cache": JudgeCache,
    "judge_option": JudgeOption,
    "judge_tokens": JudgeTokens,
    "verifier": VerifierName,
}


def judge_options(store: bool = True, local: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds options such as `--judge` and `--judge-model` to a command.

    The decorated function must have a parameter `judge`. Its value is the judge that the options
    name, or None without these options.

    Args:
        store: whether to add `--store`, an index with evidence for questions without passages.
        local: whether to accept `--judge local` (the local verifier, a small entailment model), and
            to add `--verifier`, which names its model.
    """
    left_out = {*([] if store else ["store"]), *([] if local else ["verifier"])}
    annotations = {**OPTIONS, "judge": LocalOrURL} if local else OPTIONS
    names = [name for name in OPTIONS if name not in left_out]
    options = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotations[name])
        for name in names
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> int:
            given = [values.pop(name) if name in names else None for name in OPTIONS]
            if local:
                return command(judge=named_judge(*given), **values)
            return command(judge=llm_judge(*given[:-1]), **values)

        parameters: list[Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += options if parameter.name == "judge" else [parameter]
        # typer reads the options from the signature
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
