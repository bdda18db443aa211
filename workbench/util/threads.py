"""Set the number of CPU threads that torch uses."""

import os
import sys

from workbench.types import WorkbenchError

SPINS = 2000  # how often a waiting thread checks before it sleeps; this takes some microseconds
# The same on every machine, because the number of threads changes results. Tiny models gain
# nothing from more threads.
DEFAULT_THREADS = 2


class use_threads:
    """Context manager that sets torch's number of CPU threads and restores the previous number.

    If `threads` is None, the number does not change.
    """

    def __init__(self, threads: int | None) -> None:
        if threads is not None and threads < 1:
            raise WorkbenchError(f"threads is {threads}: it must be at least 1")
        self.threads = threads
        if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
            # On shared cores, spinning threads block the threads that they wait for: three times
            # slower. Threads that sleep at once take 50 % longer on free cores, because a tiny
            # model computes little between two waits. So threads spin briefly, then sleep.
            os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
            os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))

    def __enter__(self) -> None:
        import torch

        self.before = torch.get_num_threads()
        torch.set_num_threads(self.threads or self.before)

    def __exit__(self, *_: object) -> None:
        import torch

        torch.set_num_threads(self.before)
