"""What a process in the background does in a test."""

from __future__ import annotations

import os
import time
from pathlib import Path

from workbench.background import start
from workbench.runs.folder import lock
from workbench.types import WorkbenchError


def count(folder: str) -> None:
    """Keep the folder to oneself, and count in it until somebody stops that."""
    with lock(Path(folder)):
        for number in range(10**6):
            Path(folder, "number").write_text(str(number))
            time.sleep(0.01)


def nothing() -> None:
    pass


def refuse() -> None:
    raise WorkbenchError("this cannot\nwork: do that")


def crash() -> None:
    raise RuntimeError("a bug")


def die() -> None:
    os.kill(os.getpid(), 9)


def say_much(size: int) -> None:
    print("x" * size)


def begin_counting(log: str, folder: str) -> None:
    start(count, {"folder": folder}, Path(log)).wait()
