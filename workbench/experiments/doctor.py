"""`workbench doctor`: check whether this machine can run the library, on its CPU and on a GPU.

No check uses a network. The GPU checks were tested on one H200, and with simulated GPUs.
"""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from workbench.methods.bench import SCALES, bench
from workbench.policies.generate import generate
from workbench.types import JsonObject
from workbench.util.failures import error_line

Status = Literal["ok", "warning", "failed"]
Route = Literal["cpu", "gpu"]
ROUTES: dict[Route, str] = {"cpu": "", "gpu": "gpu"}  # path -> the package's extra that it needs
NAME = "factuality-workbench"
GROUPS = Path("/sys/fs/cgroup")  # limits of containers on Linux
GB, GIB = 10**9, 2**30
MIN_GPU = 22.0  # GiB; a smaller GPU fits models of the bench "small"


@dataclass(frozen=True)
class Check:
    """The result of checking one requirement, such as a package: one line of the report.

    Attributes:
        found: what the check found, such as a version.
        remedy: what the user can do; "" if the status is "ok".
        path: "gpu" if only use on a GPU has this requirement; "cpu" if every use has it.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""
    path: Route = "cpu"


def examine() -> JsonObject:
    """Run all checks of this machine and installation, and return the report.

    Returns:
        An object with three keys:

        * "checks": the list of checks.
        * "cpu", "gpu": whether the library works there, as `{works, status, failed}`. `status` is
          the worst status of a check, and `failed` has the names of the failed checks.
    """
    torch = _torch()
    python = Check("Python", "ok", f"{platform.python_version()} ({sys.executable})")
    checks = [python, torch, *packages(pinned()), *_room()]
    if torch.status == "ok":
        import torch as installed

        checks += [*gpus(installed), _answers()]
    else:
        checks.append(Check("the tiny policy", "failed", "not tested without torch", torch.remedy))
    return {
        "checks": [asdict(check) for check in checks],
        "cpu": verdict([check for check in checks if check.path == "cpu"]),
        "gpu": verdict(checks),
    }


def verdict(checks: Sequence[Check]) -> JsonObject:
    statuses = {"ok", *(check.status for check in checks)}
    worst = next(status for status in ("failed", "warning", "ok") if status in statuses)
    failed = [check.name for check in checks if check.status == "failed"]
    return {"works": not failed, "status": worst, "failed": failed}


def pinned() -> dict[str, dict[str, str]]:
    """Return the versions that this library requires, as `{extra: {package: version}}`.

    The extra "" has the packages that are always installed.
    """
    found: dict[str, dict[str, str]] = {"": {}}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for one in importlib.metadata.requires(NAME) or []:
            extra = re.search(r"extra == ['\"](\w+)['\"]", one)
            pins = found.setdefault(extra[1] if extra else "", {})
            if match := re.match(r"([\w.-]+)(?:\[[^]]*\])? *==([\w.+!-]+) *(;|$)", one):
                pins[match[1]] = match[2]
    return found


def _torch() -> Check:
    try:
        import torch
    except Exception as error:  # a broken installation raises any type
        remedy = "reinstall it: `pip install --force-reinstall torch` with its pinned version"
        return Check("torch", "failed", _summary(error), remedy)
    build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU"
    return Check("torch", "ok", f"{torch.__version__}, {build}, {torch.get_num_threads()} threads")


def gpus(torch: Any) -> list[Check]:
    """Check the memory of the GPUs that torch reports, and whether they support bfloat16."""
    failed = partial(Check, "GPU", "failed", path="gpu")
    if not torch.version.cuda:
        remedy = "create the environment from environment.yml, which has torch built for CUDA"
        return [failed(f"torch {torch.__version__} is built for the CPU", remedy)]
    try:
        if torch.cuda.is_available():
            numbers = range(torch.cuda.device_count())
            return [
                _one_gpu(number, torch.cuda.get_device_properties(number)) for number in numbers
            ]
    except (RuntimeError, AssertionError) as error:  # torch passes on the driver's errors
        return [failed(_summary(error), "restart the machine, or update the driver")]
    remedy = f"install NVIDIA's driver for CUDA {torch.version.cuda}; check CUDA_VISIBLE_DEVICES"
    return [failed("torch finds no GPU", remedy)]


def _one_gpu(number: int, own: Any) -> Check:
    """Check the memory and the bfloat16 support of GPU `number`.

    `own` has the properties that torch reports for this GPU.
    """
    memory = own.total_memory / GIB
    found = f"{own.name}, {memory:.1f} GiB, compute capability {own.major}.{own.minor}"
    check = partial(Check, f"GPU {number}", found=found, path="gpu")
    if own.major < 8:
        need = "for bfloat16, use a GPU of compute capability 8.0 or higher, such as an A100"
        return check("failed", remedy=need)
    if memory < MIN_GPU:
        return check("warning", remedy="use the bench small; `workbench plan` shows what fits")
    return check("ok")


def packages(pins: Mapping[str, Mapping[str, str]]) -> list[Check]:
    """Check whether the installed packages have their pinned versions, without importing them.

    `pins` is the result of `pinned`. Only its extras "" and "gpu" are checked.
    """
    found = [
        _package(name, wanted, path)
        for path, extra in ROUTES.items()
        for name, wanted in pins.get(extra, {}).items()
    ]
    return found or [Check("packages", "warning", "no pins found", "`pip install -e .`")]


def _package(name: str, wanted: str, path: Route) -> Check:
    check = partial(Check, f"package {name}", path=path)
    remedy = f"`pip install {name}=={wanted}`"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if path == "gpu":
            return check("warning", "not installed: optional", remedy)
        return check("failed", "not installed", f"{remedy}, or `make demo` in a clone")
    if version.split("+")[0] == wanted:  # torch: 2.13.0+cpu
        return check("ok", version)
    return check("warning", f"{version}, but {wanted} is pinned", remedy)


def memory_here() -> int:
    """Return the bytes of memory of this machine, or of its container if that has a lower limit."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups, v2 and v1
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int((GROUPS / name).read_text()))
    # a value of 0 or below means that there is no limit
    return min(one for one in found if one > 0)


def _room() -> list[Check]:
    """Check disk space and memory, for the tiny bench and for models of 7B parameters."""
    disk, memory = shutil.disk_usage(Path.cwd()).free, memory_here()
    return [
        _enough("disk here", disk, 0.2, 2, "cpu", "free disk space for runs/"),
        _enough("disk for models", disk, 0, 60, "gpu", "a checkpoint of 7B parameters takes 15 GB"),
        _enough("memory", memory, 1, 4, "cpu", "close other programs"),
        _enough("memory for models", memory, 0, 32, "gpu", "loading 7B parameters takes 15 GB"),
    ]


def _enough(
    name: str, available: int, required: float, wanted: float, path: Route, remedy: str
) -> Check:
    size = available / GB
    status: Status = "failed" if size < required else "warning" if size < wanted else "ok"
    return Check(name, status, f"{size:,.1f} GB", "" if status == "ok" else remedy, path)


def _answers() -> Check:
    """Check whether the default policy answers a question."""
    check = partial(Check, "the tiny policy")
    if not Path(SCALES["tiny"].policy).is_dir():
        return check("warning", "not part of an installed package", "use a clone of the repository")
    try:
        tiny = bench("tiny")
        questions = tiny.questions("validation")[:1]
        [answer] = generate(tiny.load(tiny.policy), questions, max_new_tokens=8, greedy=True)
    except Exception as error:  # loading and generation raise many types
        command = "`workbench --debug evaluate sft --split validation --limit 1` shows more"
        return check("failed", _summary(error), command)
    if not answer.text.strip():
        return check("failed", "an empty answer", "restore data/tiny-policy from the repository")
    return check("ok", "answers a question")


def _summary(error: BaseException) -> str:
    return f"{type(error).__name__}: {error_line(error)}"
