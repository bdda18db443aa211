"""Run a function of this library in a subprocess that ends with its parent.

The subprocess reads its job from a pipe that the parent keeps open. The pipe closes when the parent
ends in any way, including `kill -9`. The subprocess then kills itself, so no training continues
unattended.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.types import JsonMapping, WorkbenchError
from workbench.util.imports import light_transformers

CODE = "from workbench.util.subprocess import work; from {module} import {name}; work({name})"
INTERRUPTED = (130, -signal.SIGINT)  # exit codes; the second if the process was still starting
LOG_BYTES = 10**6  # the next process replaces a longer log
LINE_BYTES = 4000  # bytes at the end of a log that are searched for its last line


@dataclass(frozen=True)
class Background:
    """A subprocess that `start` has started.

    Its output is in the file `log`, from byte `begin` on; earlier output is from other processes.
    """

    process: subprocess.Popen[bytes]
    log: Path
    begin: int

    def interrupt(self) -> None:
        """Send SIGINT (Ctrl-C), so that the process saves its state and stops.

        A second call stops the process at once.
        """
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process and all processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until the process ends, and return its exit code.

        The code is 130 or -2 (`INTERRUPTED`) if the process was interrupted. Any other negative
        code is the negative number of the signal that killed the process.
        """
        return self.process.wait()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def last_line(self) -> str:
        """Return the last non-empty line that the process printed.

        If a signal killed the process, return a text such as "killed by SIGKILL" instead. If
        nothing was printed, return a text such as "ended with exit code 1".
        """
        code = self.process.poll()
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.begin, size - LINE_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return next(
            (line.strip() for line in reversed(lines) if line.strip()),
            f"ended with exit code {code}",
        )


def environment() -> dict[str, str]:
    """Return the environment variables of this process, with its import path in PYTHONPATH.

    A subprocess that is started with `python -P` and these variables imports the same modules.
    """
    return os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def start(function: Callable[..., object], job: JsonMapping, log: Path) -> Background:
    """Start `function(**job)` in a subprocess that appends its output to `log`.

    Args:
        function: a top-level function of a module, which the subprocess imports by name.
        job: the keyword arguments of `function`, as JSON values.
        log: file for stdout and stderr. A file of more than 1 MB is deleted first.
    """
    assert function.__module__ != "__main__", (
        "a function of a script cannot be imported by the subprocess"
    )
    code = CODE.format(module=function.__module__, name=function.__qualname__)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.unlink()
    with log.open("ab") as file:
        begin = file.tell()
        # a new process group, so that Ctrl-C in a terminal reaches only the parent
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],  # -P: do not import from the working directory
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            process_group=0,
            env={**environment(), "PYTHONUNBUFFERED": "1"},
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # the process has already ended; see its log
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    return Background(process, log, begin)


def work(function: Callable[..., object]) -> None:
    """Run `function(**job)`, where `job` is a JSON object in the first line of stdin.

    `start` calls `work` in the subprocess. When the parent process ends, stdin closes, and the
    subprocess kills itself.
    """
    # Python ignores SIGINT if its parent did, as a shell script's background jobs do
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        with light_transformers():
            function(**job)
    except KeyboardInterrupt:
        sys.exit(130)
    except WorkbenchError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(error.code)


def _end_with_stdin() -> None:
    # stdin gets no more data, so this returns when the parent has ended
    os.read(sys.stdin.fileno(), 1)
    leads_group = os.getpgrp() == os.getpid()
    # kill the whole group, because an evaluation may have a subprocess
    (os.killpg if leads_group else os.kill)(os.getpid(), signal.SIGKILL)
