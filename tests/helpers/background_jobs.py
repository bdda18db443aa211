"""Jobs of background processes in tests."""

import os
import time
from pathlib import Path

from workbench.runs.folder import lock
from workbench.types import WorkbenchError
from workbench.util.jsonl import append_json, write_json
from workbench.util.subprocess import start


def count(folder: str) -> None:
    """Lock the folder and count in it until stopped."""
    with lock(Path(folder)):
        for number in range(10**6):
            Path(folder, "number").write_text(str(number))
            time.sleep(0.01)


def train_slowly(folder: str, steps: int = 10**6, pause: float = 0.01) -> None:
    """Write what a view reads of a training: a lock, a row of metrics per step, a summary."""
    out, status = Path(folder), "interrupted"
    with lock(out):
        try:
            for step in range(1, steps + 1):
                append_json(
                    out / "metrics.jsonl",
                    {"step": step, "reward": step / 10, "kl": None, "length": 3.0},
                )
                time.sleep(pause)
            status = "done"
        except KeyboardInterrupt:
            pass
        write_json(out / "summary.json", {"status": status})


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
