"""How many CPU threads torch uses."""

from __future__ import annotations

import os
import sys
from typing import Any

from workbench.types import WorkbenchError

SPINS = 2000  # how often a thread that waits looks again before it sleeps: some microseconds
# on every machine: the number is part of what makes two runs equal, and tiny models gain nothing
# from more
DEFAULT_THREADS = 2


class use_threads:
    """`with use_threads(2): …` sets torch's threads and gives the former number back; None
    leaves them alone.
    """

    def __init__(self, threads: int | None) -> None:
        if threads is not None and threads < 1:
            raise WorkbenchError(f"threads is {threads}: it must be at least 1")
        self.threads = threads
        if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
            # Threads that spin while they wait hold up the ones they wait for where cores are
            # shared: three times slower. Those that sleep at once take half as long again where
            # cores are free: a tiny model has little to do between two waits.
            os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
            os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))

    def __enter__(self) -> None:
        import torch

        self.before = torch.get_num_threads()
        torch.set_num_threads(self.threads or self.before)

    def __exit__(self, *_: Any) -> None:
        import torch

        torch.set_num_threads(self.before)
