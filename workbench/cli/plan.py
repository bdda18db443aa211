"""`workbench plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from workbench.cli.frame import ABSENT, Json, app, complain, print_table, show, stdout_kept_clean
from workbench.experiments.plan import GPUS, gib, plan
from workbench.methods import TRAINED


@app.command(
    "plan",
    epilog="Example: workbench plan truthrl --policy Qwen/Qwen3-8B --gpu h200-141",
)
def plan_command(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"One of {', '.join(TRAINED)}.")],
    bench: Annotated[
        str, typer.Option(help="Bench that sets the defaults: tiny, small or paper.")
    ] = "paper",
    policy: Annotated[
        str | None, typer.Option(help="A model's folder or public name; default: the bench's.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(GPUS)}, or cpu for this machine; default: list all."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METHOD.FIELD=VALUE", help="Change a setting; repeatable."),
    ] = None,
    prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a prompt: 128 on the tiny bench, else 512.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Compute what a training takes before it starts: memory, hours, judge requests.

    Exit code 2 where it does not fit, with the setting to turn.
    """
    with stdout_kept_clean():
        found = plan(
            method,
            bench,
            policy=policy,
            gpu=gpu,
            overrides=overrides or [],
            prompt_tokens=prompt_tokens,
        )
    show(found, as_json, _print)
    complain(found["assumed"])
    for remedy in found["remedies"]:
        complain(f"does not fit: {remedy}")
    return 2 if found["remedies"] else 0


def _print(found: Mapping[str, Any]) -> None:
    phases = found["phases"]
    items = dict.fromkeys(item for phase in phases for item in phase["bytes"])
    rows = [
        (item.replace("_", " "), *(gib(one["bytes"].get(item, 0)) for one in phases))
        for item in items
    ]
    head = [f"{one['phase']}\n{one['rows']:,} rows of {one['tokens']:,} tokens" for one in phases]
    sizes = f"{found['parameters']:,} parameters, {found['lora_parameters']:,} of the adapter"
    totals = ("with reserve", *(gib(one["total"]) for one in phases))
    print_table(f"{found['method']} on {found['policy']}: {sizes}", ("", *head), [*rows, totals])
    steps, hours, judge = found["steps"], found["hours"], found["judge_requests"]
    print(
        f"steps: {steps or ABSENT}, {found['responses_a_step']:,} rows each;"
        f" hours: {hours or ABSENT}"
    )
    print(
        f"judge requests: {judge['response']:,} a response, {judge['step']:,} a step,"
        f" {judge['run']:,} in all"
    )
    where = found["gpu"] or ", ".join(found["fits_on"]) or "any GPU listed here"
    verdict = "does not fit" if found["fits"] is False else "fits"
    print(f"needs {gib(found['peak_bytes'])}: {verdict} on {where}")
