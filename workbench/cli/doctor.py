"""`workbench doctor`: print whether this machine can run the workbench."""

from workbench.cli.frame import Json, app, complain, print_table, show, stdout_kept_clean
from workbench.experiments.doctor import examine
from workbench.types import JsonMapping


@app.command(epilog="Example: workbench doctor --json")
def doctor(as_json: Json = False) -> int:
    """Check whether this machine can run the workbench.

    The checks cover Python, torch, GPUs, package versions, disk and memory. The exit code
    is 0 if the workbench works on the CPU, else 2.
    """
    with stdout_kept_clean():
        result = examine()
    show(result, as_json, _print)
    complain("the GPU checks were tested on one H200, otherwise with simulated GPUs")
    return 0 if result["cpu"]["works"] else 2


def _print(result: JsonMapping) -> None:
    rows = [
        (check["status"], check["name"], check["found"], check["remedy"])
        for check in result["checks"]
    ]
    print_table("", ("", "", "found", "remedy"), rows)
    for path in ("cpu", "gpu"):
        verdict = result[path]
        failed = f"does not work: {', '.join(verdict['failed'])}"
        works = "works, with warnings" if verdict["status"] == "warning" else "works"
        print(f"{path.upper()} path: {works if verdict['works'] else failed}")
