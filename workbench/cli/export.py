"""`workbench export`: write a merged model, or a table of claims."""

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workbench.cli.frame import Json, app, show, stdout_kept_clean
from workbench.experiments.claims_table import export_claims
from workbench.experiments.export import Dtype
from workbench.experiments.export import export as export_policy
from workbench.types import JsonMapping, WorkbenchError


@app.command(epilog="Example: workbench export runs/truthrl --merged runs/truthrl-merged")
def export(
    policy: Annotated[
        str,
        Argument(
            help="Folder of a finished run or an adapter; for --claims, a run or a feedback file."
        ),
    ],
    merged: Annotated[
        Path | None,
        Option(metavar="DIR", help="New folder for safetensors, tokenizer and card."),
    ] = None,
    claims: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="New .csv or .parquet table with a row for each claim instead."
        ),
    ] = None,
    base: Annotated[
        str | None,
        Option(help="Base model of the adapter; default: the model that the adapter names."),
    ] = None,
    dtype: Annotated[
        Dtype, Option(help="Type of the stored weights; base: as in the base model.")
    ] = "base",
    push: Annotated[
        str | None,
        Option(
            metavar="OWNER/NAME", help="Also upload the model to this new or empty hub repository."
        ),
    ] = None,
    private: Annotated[
        bool, Option("--private/--public", help="Visibility of the repository of --push.")
    ] = True,
    as_json: Json = False,
) -> int:
    """Merge a trained adapter into its base model, or write claims as a table.

    transformers and vLLM can load the merged model. llama.cpp's convert_hf_to_gguf.py converts it
    to a GGUF file. Only --push uploads the model, with the login of `hf auth login` or HF_TOKEN.
    """
    if (merged is None) == (claims is None):
        raise WorkbenchError(
            "name either --merged DIR to write a model, or --claims FILE to write a table"
        )
    if claims is not None:
        if push is not None or not private:
            raise WorkbenchError(
                f"{'--public' if push is None else '--push'} uploads a model, and --claims writes a"
                " table: leave it out, or name a model's folder with --merged DIR instead of"
                " --claims"
            )
        with stdout_kept_clean():
            table = export_claims(policy, claims)
        return show(table, as_json)
    assert merged is not None
    if push is None and not private:
        raise WorkbenchError("--public needs --push: name the repository with --push OWNER/NAME")
    with stdout_kept_clean():
        result = export_policy(policy, merged, base=base, dtype=dtype, push=push, private=private)
    return show(result, as_json, _print)


def _print(result: JsonMapping) -> None:
    out, size = result["out"], f"{result['bytes'] / 1e6:,.1f} MB"
    print(f"{out}: {result['parameters']:,} parameters as {result['dtype']}, {size}")
    print(f"serve it: vllm serve {shlex.quote(out)}")
    if "url" in result:
        print(f"uploaded to {result['url']}, {'private' if result['private'] else 'public'}")
