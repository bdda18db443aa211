"""A model sharded over two CPU processes by DeepSpeed's ZeRO-3 equals the whole model, with the
documented script and config.
"""

import os
import sys
from pathlib import Path

from tests.engines.environment import needs
from tests.engines.measured import store
from tests.test_processes import block, check_parts_are_the_whole, in_parts, whole

pytestmark = needs("deepspeed")


def test_zero3_equals_training_the_whole_model(tmp_path: Path) -> None:
    here = Path(sys.prefix)
    # with ninja, which compiles the communication library for CPUs
    path = f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"
    more = {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(here / "compiled"), "PATH": path}
    parts = in_parts(tmp_path, "zero3", block("yaml", 2), **more)
    store("deepspeed", {"adapters_apart": check_parts_are_the_whole(parts, whole(tmp_path))})
