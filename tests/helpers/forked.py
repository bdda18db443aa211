"""Subprocesses that start with torch, transformers and TRL imported, which saves more time than a
small training takes.

`run` is like `subprocess.run` with `python -m MODULE`. The first call starts a process that imports
the libraries and forks a child for each call; the child may be killed at any time.
"""

import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from tests.helpers import ROOT


def run(
    module: str, *words: str, until: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a module with these arguments in the project's folder, with the current environment.

    SIGKILL ends it as soon as the file `until` exists.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        job = {
            "module": module,
            "words": words,
            "out": str(out),
            "err": str(err),
            "environment": dict(os.environ),
        }
        status = _ask(json.dumps(job | {"until": str(until or "")}), timeout)
        return subprocess.CompletedProcess(
            [module, *words], status, out.read_text(), err.read_text()
        )


def _ask(job: str, timeout: float) -> int:
    parent = _parent()
    assert parent.stdin and parent.stdout
    parent.stdin.write(job + "\n")
    parent.stdin.flush()
    if not select.select([parent.stdout], [], [], timeout)[0]:
        os.killpg(parent.pid, signal.SIGKILL)
        _parent.cache_clear()
        raise TimeoutError(f"no end after {timeout} s: {job[:500]}")
    return int(parent.stdout.readline())


@cache
def _parent() -> subprocess.Popen[str]:
    """The process that forks; it ends with its standard input, that is, with this process."""
    command = [sys.executable, "-m", "tests.helpers.forked"]
    parent = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout and parent.stdout.readline() == "ready\n"
    return parent


def _read_libraries() -> None:
    """Import every training's libraries, without starting a thread, which a fork would lose."""
    import peft  # noqa: F401
    import transformers.models.llama.modeling_llama
    import transformers.models.qwen2.modeling_qwen2  # noqa: F401
    from trl import DPOTrainer, GRPOTrainer, SFTTrainer  # noqa: F401

    import workbench.training.loading  # noqa: F401
    from workbench.cli import load

    load(None)


def _serve() -> None:
    _read_libraries()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(job: dict[str, Any]) -> None:
    """Run that module until its end."""
    for number, name, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, job["out"], os.O_WRONLY),
        (2, job["err"], os.O_WRONLY),
    ):
        os.dup2(os.open(name, mode | os.O_CREAT, 0o600), number)
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv[1:] = job["words"]
    if job["until"]:
        threading.Thread(target=_die_with, args=(Path(job["until"]),), daemon=True).start()
    runpy.run_module(job["module"], run_name="__main__", alter_sys=True)


def _die_with(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _serve()
