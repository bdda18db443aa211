"""`workbench plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from workbench.cli.frame import (
    ABSENT,
    Json,
    app,
    complain,
    print_table,
    show,
    stdout_kept_clean,
    text,
)
from workbench.plan import GPUS, plan
from workbench.plan.answer import told
from workbench.recipes import TRAINED


@app.command(
    "plan",
    epilog=(
        "Example: workbench plan truthrl --policy Qwen/Qwen3-8B --gpu h200-141 --set"
        " truthrl.micro_batch=4"
    ),
)
def plan_command(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"One of {', '.join(TRAINED)}.")],
    bench: Annotated[
        str, typer.Option(help="The bench whose scale it is: tiny, small or paper.")
    ] = "paper",
    policy: Annotated[
        str | None,
        typer.Option(
            help=(
                "A model's folder or public name; by default what the bench's trainings start from."
            )
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(GPUS)}, or cpu for this machine; without it, which would do."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METHOD.FIELD=VALUE", help="Change a setting; repeatable."),
    ] = None,
    prompt_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens that a prompt is taken to have: 128 on the tiny bench, else 512."
        ),
    ] = None,
    judge_here: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A judge that is served on the same GPU: its folder or public name.",
        ),
    ] = None,
    claims: Annotated[
        int | None,
        typer.Option(min=0, help="Claims that a response is taken to make: one to 24 tokens."),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(min=1, help="Questions to train on, where stages answer all of them."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compute what a training needs before it is begun: memory, tokens, hours, and what to set
    where it does not fit.
    """
    with stdout_kept_clean():
        found = plan(
            method,
            bench,
            policy=policy,
            gpu=gpu,
            overrides=overrides or [],
            prompt_tokens=prompt_tokens,
            judge=judge_here,
            claims=claims,
            questions=questions,
        )
    show(found, as_json, _print)
    complain(found["note"])
    for assumed in (found["assumed"], found["judging"]["assumed"]):
        if assumed:
            complain(assumed)
    for remedy in found["remedies"]:
        complain(f"does not fit: {remedy}")
    return 2 if found["remedies"] else 0


def _print(found: Mapping[str, Any]) -> None:
    phases = found["phases"]
    items = list(dict.fromkeys(item for phase in phases for item in phase["bytes"]))
    used = [item for item in items if any(phase["bytes"].get(item) for phase in phases)]
    rows = [
        (item.replace("_", " "), *(_size(phase["bytes"].get(item)) for phase in phases))
        for item in used
    ]
    rows += [("together", *(told(phase["total"]) for phase in phases))]
    sizes = f"{found['parameters']:,} parameters, {found['lora_parameters']:,} of the adapter"
    print_table(
        f"{found['method']} on {found['policy']}: {sizes}\nprompts are taken to have"
        f" {found['prompt_tokens']} tokens",
        (
            "",
            *(
                f"{phase['phase']}\n{phase['rows']:,} rows of {phase['tokens']:,} tokens"
                for phase in phases
            ),
        ),
        rows,
    )
    _print_judging(found["judging"])
    print_table(
        "",
        ("", ""),
        [
            (name, text(found[key]))
            for name, key in _SCALARS.items()
            if found[key] not in (None, [], {})
        ],
    )
    print(_verdict(found))


def _print_judging(found: Mapping[str, Any]) -> None:
    """What a judge is asked in each stage, a step and in all; nothing where no stage asks one."""
    rows: list[tuple[str, Any, Mapping[str, Any]]] = []
    for one in found["stages"]:
        rows += [(f"{one['stage']}, a response", one["claims"], one["a_response"])]
        rows += (
            []
            if one["responses"] is None
            else [(f"{one['stage']}, {one['responses']:,} responses", one["claims"], one)]
        )
    rows += [("a step", None, found["per_step"])] if found["per_step"] else []
    rows += [("in all", None, found["per_run"])]
    if found["uncounted"] or found["per_run"]["requests"]:
        head = ("where a language model judges", "claims", "requests", "tokens in", "tokens out")
        print_table(
            "",
            head,
            [
                (name, text(claims), *(f"{one[key]:,}" for key in _ASKED))
                for name, claims, one in rows
            ],
        )
    if found["uncounted"]:
        print(f"not in all, for want of --questions: {', '.join(found['uncounted'])}")


_ASKED = ("requests", "tokens_in", "tokens_out")
_SCALARS = {
    "steps": "steps", "rows a step": "rows_per_step", "tokens a step": "tokens_per_step", "hours, assumed": "hours",
    "hours by part": "hours_by_part", "parts whose steps the data decide": "untimed",
    "largest micro-batch": "largest_micro_batch", "would fit on": "fits_on",
}  # fmt: skip


def _verdict(found: Mapping[str, Any]) -> str:
    peak = told(found["peak_bytes"])
    if found["gpu"] is None:
        return (
            f"needs {peak}"
            if found["fits_on"]
            else f"needs {peak}: does not fit on any GPU known here"
        )
    return f"needs {peak}: {'fits' if found['fits'] else 'does not fit'} on {found['gpu']['name']}"


def _size(size: int | None) -> str:
    return told(size) if size else ABSENT
