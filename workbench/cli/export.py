"""`workbench export`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.frame import Json, app, complain, exit_code, show, stdout_kept_clean
from workbench.export import export_merged
from workbench.merge import Dtype
from workbench.publish import Repository
from workbench.to_gguf import export_gguf
from workbench.types import WorkbenchError


@app.command(epilog="Example: workbench export runs/truthrl --merged runs/truthrl-merged")
def export(
    policy: Annotated[
        str, typer.Argument(help="The folder of a run that has ended, or of an adapter.")
    ],
    merged: Annotated[
        Path | None,
        typer.Option(
            "--merged",
            metavar="DIR",
            help="A new folder for the checkpoint: safetensors, tokenizer and card.",
        ),
    ] = None,
    gguf: Annotated[
        Path | None,
        typer.Option(
            "--gguf",
            metavar="FILE",
            help="A new file for llama.cpp, instead of a folder; needs the extra gguf.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="The model under the adapter; by default the one that the adapter names."
        ),
    ] = None,
    dtype: Annotated[
        Dtype,
        typer.Option(
            help=(
                "What the weights are stored in; base: as the base's are. Merging is in float32, on"
                " the CPU."
            )
        ),
    ] = "base",
    push: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME",
            help=(
                "Send it to this new or empty repository of the Hugging Face hub, too, with its"
                " card."
            ),
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private/--public", help="Who sees what --push sends.")
    ] = True,
    as_json: Json = False,
) -> int:
    """Merge a trained adapter into its base: one checkpoint that transformers and vLLM load, or
    a file for llama.cpp.

    With --push it goes to the Hugging Face hub as well, as whoever `hf auth login` or HF_TOKEN
    says you are; without it nothing is sent anywhere.
    """
    if (merged is None) == (gguf is None):
        raise WorkbenchError(
            "name what to write: a checkpoint's folder with --merged DIR, or a file with --gguf"
            " FILE"
        )
    if push is None and not private:
        raise WorkbenchError(
            "--public says who sees what --push sends: name the repository with --push OWNER/NAME"
        )
    repository = None if push is None else Repository(push, private)
    with stdout_kept_clean():
        if gguf is not None:
            result = export_gguf(policy, gguf, base=base, dtype=dtype, push=repository)
        else:
            assert merged is not None
            result = export_merged(policy, merged, base=base, dtype=dtype, push=repository)
    show(result, as_json, _print if gguf is None else _print_file)
    if differs := result.get("differs"):
        complain(
            f"readers of the file encode {differs} otherwise than the policy's tokenizer: send such"
            " prompts as token ids"
        )
    return exit_code(result)


def _print_file(result: Mapping[str, Any]) -> None:
    size = (
        f"{result['parameters']:,} parameters as {result['dtype']}, {result['bytes'] / 1e6:,.1f} MB"
    )
    print(f"{result['out']}: {size}, on {result['base']}")
    print(f"serve it: llama-server -m {shlex.quote(result['out'])}")
    _print_sent(result)


def _print(result: Mapping[str, Any]) -> None:
    size = (
        f"{result['parameters']:,} parameters as {result['dtype']}, {result['bytes'] / 1e6:,.1f} MB"
    )
    print(f"{result['out']}: {size}, on {result['base']}")
    print(f"serve it: vllm serve {shlex.quote(result['out'])}")
    print("its README.md says what it was trained by, and what it was told before each question")
    _print_sent(result)


def _print_sent(result: Mapping[str, Any]) -> None:
    if "url" in result:
        print(
            f"sent to {result['url']}, which"
            f" {'its owner alone sees' if result['private'] else 'everybody sees'}"
        )
