"""`workbench judge …`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, complain, ended_by_signal, show
from workbench.policies.serve import serve
from workbench.policies.vllm import MEMORY

judge_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    judge_app,
    name="judge",
    help="A language model that judges.",
    epilog="Example: workbench judge serve Qwen/Qwen2.5-7B-Instruct --gpu-memory 0.4",
)


@judge_app.command(
    "serve", epilog="Example: workbench judge serve Qwen/Qwen2.5-7B-Instruct --gpu-memory 0.4"
)
def judge_serve(
    model: Annotated[str, typer.Argument(help="A model's folder or public name.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 8000,
    name: Annotated[
        str | None, typer.Option(help="What requests call the model; by default as MODEL.")
    ] = None,
    gpu_memory: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Share of the GPU's memory; the rest is for what is trained or evaluated there.",
        ),
    ] = MEMORY,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens of prompt and reply together; by default as many as there is room for.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Serve a judge by vLLM, which has to be installed, on this machine alone, until Ctrl-C."""
    served = None
    with ended_by_signal():
        try:
            complain(f"loading {model}: seconds to minutes")
            served = serve(model, port=port, name=name, memory=gpu_memory, length=length)
            found = {"judge": served.url, "judge_model": served.model, "log": str(served.log)}
            show(found, as_json, _print)
            served.wait()
        except KeyboardInterrupt:
            if served is None:
                return 130
            served.stop()
    return 0


def _print(result: Mapping[str, Any]) -> None:
    options = shlex.join(["--judge", result["judge"], "--judge-model", result["judge_model"]])
    print(f"ready; in another terminal: workbench evaluate … {options}", flush=True)
    print(f"Ctrl-C ends it; what it prints: {result['log']}", flush=True)
