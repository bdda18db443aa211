"""The command line: `workbench …`.

A command reads its arguments, calls one function of the library and prints the result. Results go
to stdout and everything else to stderr, so that `--json` can be piped. A command returns its exit
code: 0 done, 2 bad input, 3 done with failed rows, 4 stopped by the failure limit, 130 interrupted
by a signal or a full disk.

Each module adds its commands to `frame.app` when it is imported. `main` imports only the module of
the command that it runs.
"""

from workbench.cli.frame import load, main  # noqa: F401
