"""Run a script as a launched process whose device is the CPU: python -m tests.helpers.cpu_ranks
SCRIPT ARGUMENT…

Accelerate 1.15 takes FSDP and DeepSpeed for GPUs alone: on a CPU it says nothing and trains
without FSDP. All that is changed is what it is told of this process: one of several, as on GPUs,
that talk by gloo. What it then wraps, gathers and saves is its own, DeepSpeed's and PyTorch's
work.
"""

import os
import runpy
import sys
from typing import Any


def main() -> None:
    from accelerate import PartialState
    from accelerate.utils import DistributedType

    def several(*_: Any, **__: Any) -> tuple[str, DistributedType]:
        return "gloo", DistributedType.MULTI_GPU

    os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    PartialState._prepare_backend = several
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
