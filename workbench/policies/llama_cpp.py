"""Run llama.cpp's OpenAI-compatible server on a GGUF file, for `workbench judge serve`."""

import importlib.util
import os
import threading
from pathlib import Path

from workbench.types import WorkbenchError

MAGIC = b"GGUF"  # first bytes of the format
SLOTS = 4  # largest number of requests that are computed at a time
LENGTH = 4096  # default number of tokens of prompt and reply together


def is_gguf(model: str) -> bool:
    """Return whether the name `model` ends with ".gguf". The file need not exist.

    The result is False for a folder with such a name.
    """
    return model.lower().endswith(".gguf") and not Path(model).is_dir()


def check_file(model: str) -> None:
    """Check that `model` is a GGUF file and that llama.cpp is installed.

    Raises:
        WorkbenchError: the file or llama.cpp is missing, or the file has another format.
    """
    path = Path(model).expanduser()
    if not path.is_file():
        raise WorkbenchError(
            f"no file '{model}': download a GGUF file of an instruction-tuned model, or serve a"
            " model's folder with vLLM"
        )
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise WorkbenchError(f"'{model}' is not a GGUF file: download it again")
    if importlib.util.find_spec("xllamacpp") is None:
        raise WorkbenchError(
            "llama.cpp is not installed: `pip install xllamacpp==2026.10.11549` (extra gguf), or"
            " use another OpenAI-compatible server for --judge"
        )


def run(model: str, host: str, port: int, name: str, length: int) -> None:
    """Run llama.cpp's server in this process until it is interrupted.

    Args:
        model: path of a GGUF file.
        name: the model's name in requests.
        length: largest number of tokens of prompt and reply together.
    """
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(model).expanduser())
    settings.model_alias = {name}
    settings.hostnames, settings.port, settings.ui = [host], port, False
    settings.cors_origins = f"http://{host}:{port}"  # no page of another site reads replies
    settings.n_parallel, settings.n_ctx = SLOTS, SLOTS * length  # each slot has an equal share
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    if 0 < cores < (os.cpu_count() or 1):  # llama.cpp would count all cores of the machine
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = cores
    server = xllamacpp.Server(settings)
    print(f"listening at {server.listening_address}", flush=True)
    threading.Event().wait()
