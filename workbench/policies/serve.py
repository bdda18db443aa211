"""Run a server with OpenAI's API for a judge model (the command `workbench judge serve`).

vLLM serves model folders and hub names; llama.cpp serves GGUF files. The server is a subprocess. It
ends when this process ends, even if this process is killed.

vLLM's constrained decoding is not used: it would give valid labels even from a model that cannot
judge.
"""

import contextlib
import os
import runpy
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.policies import llama_cpp, vllm
from workbench.policies.load import adapter_folder, check_policy_name, check_weights
from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.util.disk import cache_folder
from workbench.util.subprocess import INTERRUPTED, Background, start

HOST = "127.0.0.1"  # only this machine, because the server requires no key
MODULE = "vllm.entrypoints.openai.api_server"
STOP_TIMEOUT = 20.0  # seconds after the interrupt until the server is killed
POLL_INTERVAL, POLL_TIMEOUT = 0.5, 5.0  # seconds


@dataclass(frozen=True)
class Served:
    """A running server for a judge model.

    Attributes:
        url: base address of the server's API, such as "http://127.0.0.1:8000/v1".
        model: the model's name in requests.
        log: file with the server's output.
    """

    url: str
    model: str
    log: Path
    process: Background

    def wait(self) -> None:
        """Wait until the server is interrupted.

        Raises:
            WorkbenchError: the server ended without an interrupt.
        """
        if self.process.wait() not in INTERRUPTED:
            raise WorkbenchError(
                f"the server ended: {self.process.last_line()}; see {self.log} for more"
            )

    def stop(self) -> None:
        """Interrupt the server, and kill it if it does not end within `STOP_TIMEOUT` (20 s)."""
        if self.process.running:
            self.process.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.process.wait(STOP_TIMEOUT)
        self.process.kill()


def serve(
    model: str,
    *,
    port: int = 8000,
    name: str | None = None,
    memory: float = vllm.MEMORY,
    length: int | None = None,
) -> Served:
    """Start a server for a model and return when the server is ready.

    Args:
        model: a folder or a hub name (served by vLLM), or a file `….gguf` (served by llama.cpp,
            with or without a GPU).
        port: 0 chooses a free port.
        name: the model's name in requests. None: `model` itself; for a GGUF file, its name without
            folder and suffix, such as "b" for "a/b.gguf".
        memory: share of the GPU's memory that vLLM takes. A policy that is trained or evaluated on
            the same GPU needs the rest.
        length: largest number of tokens of prompt and reply together. None: as many as vLLM's
            memory and the model allow, or 4096 with llama.cpp.

    Raises:
        WorkbenchError: the model is unknown, vLLM or llama.cpp is not installed, the port is in
            use, or the server ended.
    """
    if llama_cpp.is_gguf(model):
        llama_cpp.check_file(model)
        port, name = free_port(port), name or Path(model).stem
        job: JsonObject = {"model": model, "host": HOST, "port": port, "name": name}
        job["length"] = length or llama_cpp.LENGTH
        return _start(llama_cpp.run, job, port, name)
    check_policy_name(model)
    if adapter_folder(Path(model)):
        raise WorkbenchError(
            f"'{model}' is an adapter: merge it, `workbench export {model} --merged DIR`, and"
            " serve DIR"
        )
    vllm.check_installed("use another OpenAI-compatible server for --judge")
    check_weights(model)  # vLLM leaves missing weights uninitialised
    port, name = free_port(port), name or model
    options = arguments(model, port=port, name=name, memory=memory, length=length)
    return _start(run, {"arguments": options}, port, name)


def _start(function: Callable[..., None], job: JsonMapping, port: int, name: str) -> Served:
    """Start `function(**job)`, which runs a server, in a subprocess; return when it is ready."""
    log = cache_folder() / f"judge-{port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    server = Served(f"http://{HOST}:{port}/v1", name, log, start(function, job, log))
    try:
        wait_until_ready(server)
    except BaseException:  # Ctrl-C too: no server may remain
        server.stop()
        raise
    return server


def arguments(model: str, *, port: int, name: str, memory: float, length: int | None) -> list[str]:
    """Return the command-line arguments of vLLM's server.

    Args:
        model: folder or hub name.
        name: the model's name in requests.
        memory: share of the GPU's memory that vLLM takes.
        length: largest number of tokens of prompt and reply together. None: as many as vLLM's
            memory and the model allow.
    """
    import torch

    memory_options = f"--gpu-memory-utilization {memory:g}"
    if not torch.cuda.is_available():  # as `vllm.load` does
        memory_options = f"--dtype float32 --enforce-eager --kv-cache-memory-bytes {vllm.CPU_CACHE}"
    # "vllm": not the sampling defaults of the model, because each request has its own settings
    options = (
        f"--host {HOST} --port {port} --load-format safetensors --generation-config vllm --seed 0"
        " --enable-prefix-caching --disable-uvicorn-access-log"
        f" --max-model-len {length or 'auto'} {memory_options}"
    )
    return ["--model", model, "--served-model-name", name, *options.split()]


def run(arguments: list[str]) -> None:
    """Run vLLM's server in this process, with these command-line arguments."""
    os.environ["VLLM_NO_USAGE_STATS"] = "1"  # vLLM would send usage statistics
    # `vllm.prepare` may have set these in the parent process, for an engine in that process
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_STREAM"):
        os.environ.pop(name, None)
    sys.argv = [MODULE, *arguments]
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


def wait_until_ready(server: Served) -> None:
    """Wait until the server responds to requests.

    Raises:
        WorkbenchError: the server ended.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # without a proxy
    while True:
        if not server.process.running:
            raise WorkbenchError(
                f"the server did not start: {server.process.last_line()}; see {server.log} for more"
            )
        with (
            contextlib.suppress(OSError),
            opener.open(f"{server.url.removesuffix('/v1')}/health", timeout=POLL_TIMEOUT),
        ):
            return
        time.sleep(POLL_INTERVAL)


def free_port(port: int) -> int:
    """Return `port` after checking that it is free. For 0, return any free port.

    Raises:
        WorkbenchError: the port is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise WorkbenchError(
                f"port {port} is not available ({error.strerror}): choose another --port, or 0 for"
                " a free one"
            ) from error
        return int(probe.getsockname()[1])
