"""Run a script as a launched process whose device is the CPU: python -m tests.helpers.cpu_ranks
SCRIPT ARGUMENT…

Accelerate 1.15 uses FSDP and DeepSpeed only on GPUs: on a CPU it silently trains without FSDP. This
module changes only the state of the process that Accelerate reads: one of several, connected by
gloo. Accelerate, DeepSpeed and PyTorch do the rest.
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
