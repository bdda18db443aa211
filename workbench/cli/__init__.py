"""The command line: `workbench …`. Commands only read arguments, call one function of the
library and print its result.

Results go to stdout and everything else to stderr, so `--json` can be piped. A command returns
its exit code: 0 done, 2 bad input, 3 done with failed rows, 4 stopped by the failure limit, 130
interrupted, by a signal or a full disk. The modules of this package add their commands as they
are imported; `frame` holds what they share.
"""

from workbench.cli import (  # noqa: F401 - each adds its commands
    answer,
    data,
    doctor,
    export,
    index,
    inspect,
    judge,
    klcf,
    methods,
    metrics,
    plan,
    probe,
    queue,
    score,
    train,
    verifier,
    world,
)
from workbench.cli.frame import app, main

__all__ = ["app", "main"]
