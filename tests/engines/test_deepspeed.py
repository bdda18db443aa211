"""Two processes on a CPU with parts of a model by DeepSpeed's ZeRO-3: the page's script and
config, against the whole model.
"""

import os
import sys
from pathlib import Path

from tests.engines.environment import needs
from tests.engines.told import tell
from tests.test_processes import block, check_parts_are_the_whole, in_parts, whole

pytestmark = needs("deepspeed")


def test_parts_of_a_model_by_zero3_learn_as_the_whole(tmp_path: Path) -> None:
    here = Path(sys.prefix)
    # with ninja, which compiles what processes on a CPU talk by
    path = f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"
    more = {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(here / "compiled"), "PATH": path}
    parts = in_parts(tmp_path, "zero3", block("yaml", 2), **more)
    tell("deepspeed", {"adapters_apart": check_parts_are_the_whole(parts, whole(tmp_path))})
