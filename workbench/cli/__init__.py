"""The command line: `workbench …`.

A command reads its arguments, calls one function of the library and prints the result. Results go
to stdout and everything else to stderr, so that `--json` can be piped. A command returns its exit
code: 0 done, 2 bad input, 3 done with failed rows, 4 stopped by the failure limit, 130 interrupted
by a signal or a full disk.
"""

from workbench.cli import (  # noqa: F401 - each module adds its commands when it is imported
    answer,
    compare,
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
    scorecard,
    train,
    verifier,
    world,
)
from workbench.cli.frame import app, main

__all__ = ["app", "main"]
