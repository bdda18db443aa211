"""`workbench export`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, exit_code, show, stdout_kept_clean
from workbench.export import Dtype, export_merged


@app.command(epilog="Example: workbench export runs/truthrl --merged runs/truthrl-merged")
def export(
    policy: Annotated[str, typer.Argument(help="The folder of a run that has ended, or of an adapter.")],
    merged: Annotated[
        Path, typer.Option("--merged", metavar="DIR", help="A new folder for the checkpoint: safetensors, tokenizer and card.")
    ],
    base: Annotated[
        str | None, typer.Option(help="The model under the adapter; by default the one that the adapter names.")
    ] = None,
    dtype: Annotated[
        Dtype,
        typer.Option(help="What the weights are stored in; base: as the base's are. Merging is in float32, on the CPU."),
    ] = "base",
    as_json: Json = False,
) -> int:
    """Merge a trained adapter into its base: one checkpoint that transformers and vLLM load."""
    with stdout_kept_clean():
        result = export_merged(policy, merged, base=base, dtype=dtype)
    show(result, as_json, _print)
    return exit_code(result)


def _print(result: Mapping[str, Any]) -> None:
    size = f"{result['parameters']:,} parameters as {result['dtype']}, {result['bytes'] / 1e6:,.1f} MB"
    print(f"{result['out']}: {size}, on {result['base']}")
    print(f"serve it: vllm serve {shlex.quote(result['out'])}")
    print("its README.md says what it was trained by, and what it was told before each question")
