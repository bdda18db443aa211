"""`workbench doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.cli.frame import Json, app, complain, print_table, printable, show, stdout_kept_clean
from workbench.experiments.doctor import examine


@app.command(epilog="Example: workbench doctor --json")
def doctor(as_json: Json = False) -> int:
    """Check this machine: Python, torch, GPU, versions, disk, memory, caches. Exit code 0 if the
    CPU path works.
    """
    with stdout_kept_clean():
        found = examine()
    show(found, as_json, _print)
    complain("the checks of a GPU were tested with stand-ins for such a machine")
    return 0 if found["cpu"]["works"] else 2


def _print(found: Mapping[str, Any]) -> None:
    rows = [
        (one["status"], one["name"], printable(one["found"]), one["remedy"])
        for one in found["checks"]
    ]
    print_table("", ("", "", "found", "remedy"), rows)
    for path, name in (("cpu", "CPU"), ("gpu", "GPU")):
        one = found[path]
        told = "works" if one["works"] else f"does not work: {', '.join(one['failed'])}"
        warned = ", with warnings" if one["works"] and one["status"] == "warning" else ""
        print(f"{name} path: {told}{warned}")
