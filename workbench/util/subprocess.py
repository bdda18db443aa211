"""Run a function of this library in a subprocess that ends with the parent.

The subprocess reads its job from a pipe that the parent holds open. When the pipe closes, because
the parent has ended in any way (kill -9 included), the subprocess kills itself, so that no
training goes on unattended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError

CODE = "from workbench.util.subprocess import work; from {module} import {name}; work({name})"
INTERRUPTED = (130, -signal.SIGINT)  # exit codes; the second of a process that was just starting
LOG_BYTES = 10**6  # a longer log is replaced by the next process that writes it
LINE_BYTES = 4000  # of a log's end, in which its last line is looked for


@dataclass(frozen=True)
class Background:
    """A running subprocess. It prints to `log`, from byte `begin` on."""

    process: subprocess.Popen[bytes]
    log: Path
    begin: int

    def interrupt(self) -> None:
        """Let it save and stop, as Ctrl-C does; a second call stops it at once."""
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once, with the processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code: one of `INTERRUPTED` if interrupted, negative after a signal."""
        return self.process.wait()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def last_line(self) -> str:
        """The last line that it printed, or the signal that killed it."""
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
    """The environment of a subprocess with this process's import path (run it with -P)."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def start(function: Callable[..., Any], job: Mapping[str, Any], log: Path) -> Background:
    """Start `function(**job)` in a subprocess that appends its output to `log`.

    Args:
        function: a top-level function of a module, which the subprocess imports by name.
        job: JSON values.
    """
    assert function.__module__ != "__main__", (
        "a script's own function cannot be imported by the other process"
    )
    code = CODE.format(module=function.__module__, name=function.__qualname__)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.unlink()
    with log.open("ab") as file:
        begin = file.tell()
        # A process group of its own: Ctrl-C in a terminal reaches the parent alone.
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],  # -P: do not import from the working directory
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            process_group=0,
            env={**environment(), "PYTHONUNBUFFERED": "1"},
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has already ended; see its log
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    return Background(process, log, begin)


def work(function: Callable[..., Any]) -> None:
    """In the subprocess: run the job in the first line of stdin, and end when stdin closes."""
    # a subprocess of a shell script may ignore SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        function(**job)
    except KeyboardInterrupt:
        sys.exit(130)
    except WorkbenchError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(error.code)


def _end_with_stdin() -> None:
    # nothing more is written to stdin: this returns when the parent has ended
    os.read(sys.stdin.fileno(), 1)
    alone = os.getpgrp() != os.getpid()
    # the whole group: an evaluation may have a subprocess
    (os.kill if alone else os.killpg)(os.getpid(), signal.SIGKILL)
