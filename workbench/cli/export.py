"""`workbench export`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.frame import Json, app, complain, show, stdout_kept_clean
from workbench.experiments.export import Dtype
from workbench.experiments.export import export as export_policy
from workbench.types import JsonMapping, JsonObject, WorkbenchError


@app.command(epilog="Example: workbench export runs/truthrl --merged runs/truthrl-merged")
def export(
    policy: Annotated[str, typer.Argument(help="Folder of a finished run or of an adapter.")],
    merged: Annotated[
        Path | None,
        typer.Option(
            "--merged", metavar="DIR", help="New folder for safetensors, tokenizer and card."
        ),
    ] = None,
    gguf: Annotated[
        Path | None,
        typer.Option(
            "--gguf", metavar="FILE", help="New file for llama.cpp; needs the extra gguf."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Base model of the adapter; default: the one that the adapter names."),
    ] = None,
    dtype: Annotated[
        Dtype, typer.Option(help="Type of the stored weights; base: as in the base model.")
    ] = "base",
    push: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="Also upload it to this new or empty hub repository."
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private/--public", help="Visibility of the repository of --push.")
    ] = True,
    as_json: Json = False,
) -> int:
    """Merge a trained adapter into its base model.

    The result is a checkpoint for transformers and vLLM, or a file for llama.cpp. Nothing is
    uploaded without --push, which uses the login of `hf auth login` or HF_TOKEN.
    """
    out = merged or gguf
    if out is None or (merged and gguf):
        raise WorkbenchError(
            "name one output: a folder with --merged DIR or a file with --gguf FILE"
        )
    if push is None and not private:
        raise WorkbenchError("--public needs --push: name the repository with --push OWNER/NAME")
    how: JsonObject = {"base": base, "dtype": dtype, "push": push, "private": private}
    with stdout_kept_clean():
        result = export_policy(policy, out, gguf=gguf is not None, **how)
    code = show(result, as_json, _print)
    if differs := result.get("differs"):
        complain(f"llama.cpp encodes {differs} differently: send such prompts as token ids")
    return code


def _print(result: JsonMapping) -> None:
    out, size = result["out"], f"{result['bytes'] / 1e6:,.1f} MB"
    print(f"{out}: {result['parameters']:,} parameters as {result['dtype']}, {size}")
    server = "llama-server -m" if "words" in result else "vllm serve"
    print(f"serve it: {server} {shlex.quote(out)}")
    if "url" in result:
        print(f"uploaded to {result['url']}, {'private' if result['private'] else 'public'}")
