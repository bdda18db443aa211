"""`workbench judge …`: serve a language model as a judge."""

import shlex
from typing import Annotated

import typer

from workbench.cli.frame import Json, add_group, complain, ended_by_signal, show
from workbench.policies.llama_cpp import LENGTH, is_gguf
from workbench.policies.serve import serve
from workbench.policies.vllm import MEMORY
from workbench.types import JsonMapping

EXAMPLE = "judge serve Qwen/Qwen2.5-7B-Instruct --gpu-memory 0.4"
SMALL = "response_format=schema"  # the form of replies that suits small models
judge_app = add_group("judge", "Serve a language model as a judge.", EXAMPLE)


@judge_app.command("serve", epilog=f"Example: workbench {EXAMPLE}")
def judge_serve(
    model: Annotated[str, typer.Argument(help="A model's folder or public name, or a GGUF file.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any free port.")
    ] = 8000,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the model in requests; default: MODEL, or the file's name."),
    ] = None,
    gpu_memory: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1.0,
            help="vLLM's share of the GPU's memory; a training or an evaluation needs the rest.",
        ),
    ] = MEMORY,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum tokens of prompt and reply together; default: as many as fit, or"
            f" {LENGTH} for a GGUF file.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Serve a judge until Ctrl-C: a GGUF file with llama.cpp, other models with vLLM.

    llama.cpp or vLLM must be installed. llama.cpp needs no GPU. The server listens on this machine
    only.
    """
    server = None
    with ended_by_signal():
        try:
            complain(f"loading {model}, which takes seconds to minutes")
            server = serve(model, port=port, name=name, memory=gpu_memory, length=length)
            result = {"judge": server.url, "judge_model": server.model, "log": str(server.log)}
            if is_gguf(model):
                result["judge_option"] = SMALL
            show(result, as_json, _print)
            server.wait()
        except KeyboardInterrupt:
            if server is None:  # interrupted while the model was loading
                return 130
            server.stop()
    return 0


def _print(result: JsonMapping) -> None:
    names = ("judge", "judge_model", "judge_option")
    pairs = [(f"--{name.replace('_', '-')}", result[name]) for name in names if name in result]
    options = shlex.join([text for pair in pairs for text in pair])
    print(f"ready; in another terminal: workbench evaluate … {options}", flush=True)
    print(f"Ctrl-C stops it; its log: {result['log']}", flush=True)
