"""`workbench doctor`: does this machine run the library on its CPU, and would it on a GPU?
Nothing is asked of a network.

A check is a line: what was found, and where that is not right what to do. It counts for the path
that needs it. The checks of a GPU were tried with the answers that such a machine gives, and
have never met one.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.bench import SCALES, bench
from workbench.generate import generate

Status = Literal["ok", "warning", "failed"]
NAME, ROOT = "factuality-workbench", Path(__file__).resolve().parent.parent
GB, GIB = 10**9, 2**30
GROUPS = Path("/sys/fs/cgroup")  # limits of containers on Linux
LEAST_PYTHON = (3, 11)
LEAST_GPU = 22.0  # GiB; a smaller one holds models of the bench "small"
SECONDS = 10  # that a program is waited for; an import has thirty times that
BREAKS = "an import that ends otherwise than by an exception"


@dataclass(frozen=True)
class Check:
    """One line. `path` is what it counts for: a failed check of "cpu" stops everything, one of
    "gpu" a training on a GPU.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""
    path: Literal["cpu", "gpu"] = "cpu"


def examine(imports: bool = False) -> dict[str, Any]:
    """`checks`, and a verdict for each path: `works`, its worst `status`, and the names of the
    checks that `failed`.

    Args:
        imports: import every pinned package, Unsloth and vLLM too, each in a process of its own;
        else versions are read alone.
    """
    pins = pinned()
    torch = _torch()
    checks = [_python(), torch, *_gpu(torch), *packages(pins)]
    checks += [*(_imports(pins) if imports else []), *_room(), _cache(), _port()]
    torch_there = all(
        check.status != "failed" for check in checks if check.name in ("torch", "package torch")
    )
    checks.append(
        _answers()
        if torch_there
        else Check("the tiny policy", "failed", "not tried without torch", "install torch")
    )
    return {
        "checks": [asdict(check) for check in checks],
        "cpu": verdict([check for check in checks if check.path == "cpu"]),
        "gpu": verdict(checks),
    }


def verdict(checks: Sequence[Check]) -> dict[str, Any]:
    statuses = {check.status for check in checks}
    worst = next(
        status for status in ("failed", "warning", "ok") if status in statuses or status == "ok"
    )
    failed = [check.name for check in checks if check.status == "failed"]
    return {"works": not failed, "status": worst, "failed": failed}


def pinned() -> dict[str, dict[str, str]]:
    """What pyproject.toml pins, by extra, "" for the base: of the clone, or else as it was
    installed. environment.yml has the same pins, which a test sees to."""
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["name"] == NAME:
            groups = {"": project["dependencies"], **project["optional-dependencies"]}
            return {extra: _pins(group) for extra, group in groups.items()}
    except (OSError, ValueError, LookupError):
        pass  # an installed package has no pyproject.toml beside it
    try:
        required = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return {"": {}}
    found: dict[str, dict[str, str]] = {"": {}}
    for one in required:
        extra = re.search(r"extra == ['\"](\w+)['\"]", one)
        found.setdefault(extra[1] if extra else "", {}).update(
            _pins([one.partition(";")[0].strip()])
        )
    return found


def _pins(requirements: Iterable[str]) -> dict[str, str]:
    matches = (re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])? *==([\w.+!-]+)", one) for one in requirements)
    return {match[1]: match[2] for match in matches if match}


def _python() -> Check:
    found = platform.python_version()
    if sys.version_info < LEAST_PYTHON:
        return Check(
            "Python",
            "failed",
            found,
            "install Python 3.11 or a later one, and make the environment anew",
        )
    return Check("Python", "ok", f"{found} ({sys.executable})")


def _torch() -> Check:
    try:
        import torch

        right = bool((torch.ones(2, 2) @ torch.ones(2, 2) == 2).all())
    # a broken installation raises what it likes, and this line is where that is told
    except Exception as error:
        return Check(
            "torch",
            "failed",
            _told(error),
            "install it again: `pip install --force-reinstall torch` at its pinned version",
        )
    build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU"
    if not right:
        return Check(
            "torch",
            "failed",
            f"{torch.__version__} multiplies wrongly",
            "install it again, and see to the machine",
        )
    return Check("torch", "ok", f"{torch.__version__}, {build}, {torch.get_num_threads()} threads")


def _gpu(found: Check) -> list[Check]:
    if found.status == "failed":
        return [
            Check("GPU", "failed", "not looked for without torch", "install torch first", "gpu")
        ]
    import torch

    return gpus(torch, driver())


def driver() -> str | None:
    """The version of NVIDIA's driver, as its own program says; None where there is none that
    answers.
    """
    if (program := shutil.which("nvidia-smi")) is None:
        return None
    asked = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            asked, capture_output=True, text=True, timeout=SECONDS, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    line = (done.stdout.strip().splitlines() or [""])[0]
    return line if done.returncode == 0 and re.fullmatch(r"[\d.]+", line) else None


def gpus(torch: Any, driver: str | None) -> list[Check]:
    """What torch says of the machine's GPUs, and whether one computes."""
    told = f"driver {driver}" if driver else "no driver answers"
    if not torch.version.cuda:
        remedy = (
            "on a machine with an NVIDIA GPU make the environment from environment.yml, whose torch"
            " is built for CUDA"
        )
        return [
            Check(
                "GPU",
                "failed",
                f"torch {torch.__version__} is built for the CPU; {told}",
                remedy,
                "gpu",
            )
        ]
    try:
        if not torch.cuda.is_available():
            remedy = (
                "install or update NVIDIA's driver"
                if driver is None
                else (
                    f"update the driver for CUDA {torch.version.cuda}, and see that"
                    " CUDA_VISIBLE_DEVICES hides no GPU"
                )
            )
            return [Check("GPU", "failed", f"torch sees none; {told}", remedy, "gpu")]
        return [
            check
            for number in range(torch.cuda.device_count())
            for check in _one_gpu(torch, number, told)
        ]
    except (RuntimeError, AssertionError) as error:  # as torch tells what the driver says
        return [
            Check(
                "GPU",
                "failed",
                _told(error),
                "restart the machine or its container, and update the driver",
                "gpu",
            )
        ]


def _one_gpu(torch: Any, number: int, told: str) -> list[Check]:
    own = torch.cuda.get_device_properties(number)
    memory, name = own.total_memory / GIB, f"GPU {number}"
    found = f"{own.name}, {memory:.1f} GiB, compute capability {own.major}.{own.minor}, {told}"
    small = memory < LEAST_GPU
    remedy = "train the bench small, and see `workbench plan` for what fits" if small else ""
    lines = [Check(name, "warning" if small else "ok", found, remedy, "gpu")]
    if own.major < 8:
        need = "bfloat16 needs compute capability 8.0, as an A100 or a later GPU has"
        return [*lines, Check(f"{name}: bfloat16", "failed", "not in hardware", need, "gpu")]
    ones = torch.ones(16, 16, dtype=torch.bfloat16, device=f"cuda:{number}")
    right = bool((ones @ ones == 16).all())
    return [
        *lines,
        Check(
            f"{name}: bfloat16",
            "ok" if right else "failed",
            "computes" if right else "multiplies wrongly",
            "" if right else "update the driver, or take another GPU",
            "gpu",
        ),
    ]


def packages(pins: Mapping[str, Mapping[str, str]]) -> list[Check]:
    """The pinned packages of the base and of the extra "gpu": is that version there? Nothing is
    imported.
    """
    base = [_package(name, version, "cpu") for name, version in pins.get("", {}).items()]
    found = [
        *base,
        *(_package(name, version, "gpu") for name, version in pins.get("gpu", {}).items()),
    ]
    return found or [
        Check(
            "packages",
            "warning",
            "no pins are to be found",
            "install the package: `pip install -e .`",
        )
    ]


def _package(name: str, wanted: str, path: Literal["cpu", "gpu"]) -> Check:
    line, remedy = f"package {name}", f"`pip install {name}=={wanted}`"
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if path == "gpu":
            return Check(
                line,
                "warning",
                "not installed: the plain path trains without it",
                f"{remedy}, where its kernels are wanted",
                path,
            )
        return Check(line, "failed", "not installed", f"{remedy}, or `make demo` in a clone", path)
    if found.split("+")[0] != wanted:  # torch: 2.13.0+cpu
        return Check(
            line,
            "warning",
            f"{found}, and {wanted} is pinned",
            f"{remedy}: others were not tried",
            path,
        )
    return Check(line, "ok", found, path=path)


def _imports(pins: Mapping[str, Mapping[str, str]]) -> list[Check]:
    """Every pinned package that is there, imported by a process of its own: some end the one
    that imports them.
    """
    wanted: list[tuple[str, Literal["cpu", "gpu"]]] = [
        *((name, "cpu") for name in pins.get("", {})),
        *((name, "gpu") for name in pins.get("gpu", {})),
    ]
    return [imported(name, path) for name, path in wanted if _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def imported(name: str, path: Literal["cpu", "gpu"]) -> Check:
    module, line = name.replace("-", "_"), f"import {name}"
    environment = {
        **os.environ,
        "UNSLOTH_DISABLE_STATISTICS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {module}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30 * SECONDS,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Check(line, "failed", _told(error), f"install {name} again", path)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}: {BREAKS}"])[-1]
        return Check(
            line,
            "failed",
            last[:200],
            f"install {name} again at its pinned version; if it needs a GPU, see to that first",
            path,
        )
    return Check(line, "ok", "imports", path=path)


def _room() -> list[Check]:
    """Disk and memory."""
    free, memory = shutil.disk_usage(Path.cwd()).free, memory_here()
    return [
        _enough(
            "disk here", free, 0.2 * GB, 2 * GB, "cpu", "runs are kept under runs/: free some space"
        ),
        _enough(
            "disk here, for models",
            free,
            0,
            60 * GB,
            "gpu",
            "a model of 7B parameters takes 15 GB, its checkpoints more",
        ),
        _enough(
            "memory",
            memory,
            1 * GB,
            4 * GB,
            "cpu",
            "close other programs, or take a larger machine",
        ),
        _enough(
            "memory, for models",
            memory,
            0,
            32 * GB,
            "gpu",
            "a model is read through memory: 15 GB for 7B parameters",
        ),
    ]


def memory_here() -> int | None:
    """Bytes of memory that this process may use: the machine's, or the limit of its container;
    None on systems that do not report it (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # control groups, v2 and v1
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int((GROUPS / name).read_text()))
    return min(one for one in found if one > 0)


def _enough(
    name: str,
    there: int | None,
    least: float,
    wanted: float,
    path: Literal["cpu", "gpu"],
    remedy: str,
) -> Check:
    if there is None:
        return Check(name, "warning", "this system does not tell", "see for yourself", path)
    status: Status = "failed" if there < least else "warning" if there < wanted else "ok"
    return Check(name, status, f"{there / GB:,.1f} GB", "" if status == "ok" else remedy, path)


def _cache() -> Check:
    """The hub's cache on the disk, and which of the benches' models are in it; the hub itself is
    not asked.
    """
    try:
        from huggingface_hub import constants, try_to_load_from_cache

        folder, name = Path(constants.HF_HUB_CACHE), "models' cache"
        existing = next(path for path in (folder, *folder.parents) if path.is_dir())
        mode = (
            "offline (HF_HUB_OFFLINE)"
            if constants.HF_HUB_OFFLINE
            else "the hub is asked for what is missing"
        )
        models = [scale.policy for scale in SCALES.values() if not Path(scale.policy).is_absolute()]
        here = [
            model
            for model in models
            if isinstance(try_to_load_from_cache(model, "config.json"), str)
        ]
    # no package, no folder, no home, no such name
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        return Check(
            "models' cache",
            "failed",
            _told(error),
            "set HF_HOME to a folder that can be written",
            "gpu",
        )
    found = f"{folder}: {', '.join(here) or 'none of the benches models'}; {mode}"
    if not os.access(existing, os.W_OK):
        return Check(
            name,
            "failed",
            f"{folder} cannot be written",
            "set HF_HOME to a folder that can be",
            "gpu",
        )
    if constants.HF_HUB_OFFLINE and len(here) < len(models):
        return Check(
            name,
            "warning",
            found,
            "unset HF_HUB_OFFLINE, or name a model's folder with --policy",
            "gpu",
        )
    return Check(name, "ok", found, path="gpu")


def _port() -> Check:
    """A port of this machine alone, as the inspector and a judge of one's own need."""
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            return Check("port on 127.0.0.1", "ok", f"{server.getsockname()[1]} is free")
    except OSError as error:
        return Check(
            "port on 127.0.0.1",
            "warning",
            _told(error),
            "the inspector needs one: let this user open ports",
        )


def _answers() -> Check:
    """The shipped policy answers a question: the way from a checkpoint to a text, on whatever
    the machine has.
    """
    name = "the tiny policy"
    if not Path(SCALES["tiny"].policy).is_dir():
        return Check(
            name,
            "warning",
            "not here: an installed package does not have it",
            "work in a clone of the repository",
        )
    try:
        tiny = bench("tiny")
        questions = tiny.questions("validation")[:1]
        [answer] = generate(tiny.load(tiny.policy), questions, max_new_tokens=8, greedy=True)
    # whatever is broken on the long way to an answer is this line, with the command that tells more
    except Exception as error:
        return Check(
            name,
            "failed",
            _told(error),
            "`workbench --debug evaluate sft --split validation --limit 1` tells more",
        )
    if not answer.text.strip():
        return Check(
            name, "failed", "it says nothing", "take data/tiny-policy from the repository again"
        )
    return Check(name, "ok", "answers a question")


def _told(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]
