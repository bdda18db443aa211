"""`workbench plan`: print the estimated memory and time of a training."""

from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import (
    ABSENT,
    Json,
    Overrides,
    app,
    complain,
    print_table,
    show,
    stdout_kept_clean,
)
from workbench.experiments.plan import gib, plan
from workbench.experiments.shape import GPUS
from workbench.methods import TRAINED
from workbench.types import JsonMapping


@app.command("plan", epilog="Example: workbench plan truthrl --policy Qwen/Qwen3-8B --gpu h200-141")
def plan_command(
    method: Annotated[str, Argument(metavar="METHOD", help=f"One of {', '.join(TRAINED)}.")],
    bench: Annotated[
        str, Option(help="Bench that sets the defaults: tiny, small or paper.")
    ] = "paper",
    policy: Annotated[
        str | None, Option(help="A model's folder or public name; default: the bench's.")
    ] = None,
    gpu: Annotated[
        str | None, Option(help=f"One of {', '.join(GPUS)}, or cpu for this machine; default: all.")
    ] = None,
    overrides: Overrides = None,
    prompt_tokens: Annotated[
        int | None, Option(min=1, help="Tokens per prompt; default: 128 (tiny) or 512.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Estimate the memory, hours and judge requests of a training.

    If the training does not fit the memory, the exit code is 2, and the command prints which
    settings to change.
    """
    with stdout_kept_clean():
        result = plan(
            method,
            bench,
            policy=policy,
            gpu=gpu,
            overrides=overrides or [],
            prompt_tokens=prompt_tokens,
        )
    show(result, as_json, _print)
    complain(result["assumed"])
    for remedy in result["remedies"]:
        complain(f"the training does not fit: {remedy}")
    # so that a script can plan before it starts a training
    return 2 if result["remedies"] else 0


def _print(result: JsonMapping) -> None:
    phases = result["phases"]
    items = dict.fromkeys(item for phase in phases for item in phase["bytes"])
    rows = [
        (item.replace("_", " "), *(gib(phase["bytes"].get(item, 0)) for phase in phases))
        for item in items
    ]
    head = [f"{p['phase']}\n{p['rows']:,} rows of {p['tokens']:,} tokens" for p in phases]
    sizes = f"{result['parameters']:,} parameters, {result['lora_parameters']:,} in the adapter"
    totals = ("total with reserve", *(gib(phase["total"]) for phase in phases))
    print_table(f"{result['method']} on {result['policy']}: {sizes}", ("", *head), [*rows, totals])
    steps, hours, judge = result["steps"], result["hours"], result["judge_requests"]
    print(
        f"steps: {steps or ABSENT}, {result['responses_a_step']:,} rows per step;"
        f" hours: {hours or ABSENT}"
    )
    print(
        f"judge requests, if a language model judges: {judge['response']:,} per response,"
        f" {judge['step']:,} per step, {judge['run']:,} in total"
    )
    where = result["gpu"] or ", ".join(result["fits_on"]) or "any known GPU"
    verdict = "does not fit" if result["fits"] is False else "fits"
    print(f"needs {gib(result['peak_bytes'])}: {verdict} on {where}")
