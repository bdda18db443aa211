"""A function of this library in a process of its own: its memory is given back, its crash is its
own, and it ends with us.

The process reads its job from a pipe that this one holds open. When that closes, because this
process has ended in whatever way (kill -9 included), the other one kills itself: nothing trains
on that nobody waits for.
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

CODE = "from workbench.background import work; from {module} import {name}; work({name})"
INTERRUPTED = (130, -signal.SIGINT)  # exit codes; the latter of a process that had hardly begun
LOG_BYTES = 10**6  # a longer log is begun anew by the next process that writes it
LINE_BYTES = 4000  # of a log's end, in which its last line is looked for


@dataclass(frozen=True)
class Background:
    """A process under way. What it prints stands in `log` from byte `begin` on."""

    process: subprocess.Popen[bytes]
    log: Path
    begin: int

    def interrupt(self) -> None:
        """Let it save and stop, as Ctrl-C does; a second time, let it stop at once."""
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once, with whatever processes it has begun."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code: one of `INTERRUPTED` where that is how it ended, else negative where a
        signal killed it.
        """
        return self.process.wait()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def last_line(self) -> str:
        """What it printed last, in one line: of one that failed, why; of one that was killed, by
        which signal.
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
    """That of another process which imports what this one can, whatever lies in the working
    directory (with Python's -P).
    """
    return os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def start(function: Callable[..., Any], job: Mapping[str, Any], log: Path) -> Background:
    """Begin `function(**job)` in a process of its own, which prints to the end of `log`.

    Args:
        function: a function of a module's top level, by whose name the process imports it.
        job: what JSON can hold.
    """
    assert function.__module__ != "__main__", (
        "a script's own function cannot be imported by the other process"
    )
    code = CODE.format(module=function.__module__, name=function.__qualname__)
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.unlink()
    with log.open("ab") as file:
        begin = file.tell()
        # A group of its own: Ctrl-C in a terminal reaches this process alone, which says what
        # becomes of the other.
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],  # -P: nothing of the working directory is imported
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            process_group=0,
            env={**environment(), "PYTHONUNBUFFERED": "1"},
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended already, and its log says why
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    return Background(process, log, begin)


def work(function: Callable[..., Any]) -> None:
    """The other process: do the job that the first line of stdin holds, and end when stdin does."""
    # which a process that a script starts may have ignored
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
    # nothing more is ever written: this returns when whoever started us is gone
    os.read(sys.stdin.fileno(), 1)
    alone = os.getpgrp() != os.getpid()
    # the group: an evaluation may have a process of its own
    (os.kill if alone else os.killpg)(os.getpid(), signal.SIGKILL)
