"""A judge's model behind vLLM's OpenAI-compatible server on this machine: `workbench judge serve`.

The server is a process that ends with the one that began it, in whatever way that ends
(`workbench.util.subprocess`). vLLM could hold replies to a form. It is not asked to: a model that
cannot judge would give labels then, where now it gives no verdict.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from workbench.policies import vllm
from workbench.policies.load import adapter_folder, check_policy_name, check_weights
from workbench.types import WorkbenchError
from workbench.util.disk import cache_folder
from workbench.util.subprocess import INTERRUPTED, Background, start

HOST = "127.0.0.1"  # this machine alone: the server asks nobody for a key
MODULE = "vllm.entrypoints.openai.api_server"
ENDING = 20.0  # seconds that a server may take to end
LOOK, PATIENCE = 0.5, 5.0  # seconds between two looks at whether it is ready, and for one of them


@dataclass(frozen=True)
class Served:
    """A server that is ready, at `url`, with its model under the name that requests give. `log`
    is what it prints.
    """

    url: str
    model: str
    log: Path
    process: Background

    def wait(self) -> None:
        """Return when the server has been stopped.

        Raises:
            WorkbenchError: it ended by itself.
        """
        if self.process.wait() not in INTERRUPTED:
            raise WorkbenchError(
                f"the server ended: {self.process.last_line()}; the rest stands in {self.log}"
            )

    def stop(self) -> None:
        stop(self.process)


def serve(
    model: str,
    *,
    port: int = 8000,
    name: str | None = None,
    memory: float = vllm.MEMORY,
    length: int | None = None,
) -> Served:
    """Begin to serve a model, a folder or a hub name, and return once it answers.

    Args:
        port: 0 takes a free one.
        name: what requests call it; by default as `model`.
        memory: share of the GPU's memory; a policy that is trained or evaluated on the same one
        needs the rest.
        length: tokens that prompt and reply may have together; by default what the model has, or
        the memory has room for.

    Raises:
        WorkbenchError: no vLLM, no such model, a port that is taken, or the server ended, and
        why.
    """
    check_policy_name(model)
    if adapter_folder(Path(model)):
        raise WorkbenchError(
            f"'{model}' is an adapter: merge it, `workbench export {model} --merged DIR`, and"
            " serve DIR"
        )
    vllm.check_installed(
        "serve the model otherwise: any OpenAI-compatible server will do for --judge"
    )
    check_weights(model)  # vLLM fills what is missing with whatever the memory holds
    port, called = free_port(port), name or model
    log = cache_folder() / f"judge-{port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    told = arguments(model, port=port, name=called, memory=memory, length=length)
    server = Served(f"http://{HOST}:{port}/v1", called, log, start(run, {"arguments": told}, log))
    try:
        wait_until_ready(server)
    except BaseException:
        server.stop()
        raise
    return server


def arguments(
    model: str,
    *,
    port: int,
    name: str,
    memory: float,
    length: int | None,
    on_gpu: bool | None = None,
) -> list[str]:
    """What vLLM's server is told. A model's own settings of sampling are left out: a judge's
    requests say how they sample.
    """
    import torch

    on_gpu = torch.cuda.is_available() if on_gpu is None else on_gpu
    memory_options = f"--gpu-memory-utilization {memory:g}"
    if not on_gpu:
        memory_options = f"--dtype float32 --enforce-eager --kv-cache-memory-bytes {vllm.CPU_CACHE}"
    options = (
        f"--host {HOST} --port {port} --load-format safetensors --generation-config vllm --seed 0"
        " --enable-prefix-caching --disable-uvicorn-access-log"
        f" --max-model-len {length or 'auto'} {memory_options}"
    )
    return ["--model", model, "--served-model-name", name, *options.split()]


def run(arguments: list[str]) -> None:
    """What the server's process does."""
    os.environ["VLLM_NO_USAGE_STATS"] = "1"  # nothing leaves the machine
    # as an engine there has them
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_STREAM"):
        os.environ.pop(name, None)
    sys.argv = [MODULE, *arguments]
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


def wait_until_ready(server: Served) -> None:
    """Return once the server answers.

    Raises:
        WorkbenchError: it has ended instead.
    """
    here = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        if not server.process.running:
            raise WorkbenchError(
                f"vLLM's server did not start: {server.process.last_line()}; the rest stands in"
                f" {server.log}"
            )
        with (
            contextlib.suppress(OSError),
            here.open(f"{server.url.removesuffix('/v1')}/health", timeout=PATIENCE),
        ):
            return
        time.sleep(LOOK)


def free_port(port: int) -> int:
    """The port, or a free one for 0.

    Raises:
        WorkbenchError: something listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise WorkbenchError(
                f"port {port} cannot be had ({error.strerror}): choose another --port, or 0 for a"
                " free one"
            ) from error
        return int(probe.getsockname()[1])


def stop(process: Background) -> None:
    """End a server as Ctrl-C does, and what is left of it after a while at once."""
    if process.running:
        process.interrupt()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.process.wait(ENDING)
    process.kill()
