"""`workbench doctor`: its checks on this machine and on simulated ones, without a network."""

import importlib.metadata
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import ROOT, Cli, examples, run_python
from workbench.experiments import doctor as module
from workbench.experiments.doctor import Check, gpus, memory_here, packages, pinned, verdict
from workbench.types import JsonObject

ALONE = "sys.argv = ['workbench', 'doctor', '--json']; from workbench.cli import main; main()"


def doctor(before: str = "", **environment: str) -> tuple[int, JsonObject, str]:
    """Run the command in a subprocess after the code `before`: exit code, JSON, stderr."""
    done = run_python("-c", f"import sys\n{before}\n{ALONE}", env=environment)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def by_name(found: JsonObject) -> dict[str, JsonObject]:
    return {check["name"]: check for check in found["checks"]}


NO_NETWORK = """
import socket, atexit
def refuse(self, address, *more):
    raise AssertionError(f"asked {address}")
socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
def tell():
    heavy = ("trl", "peft", "unsloth", "vllm", "gradio", "lancedb")
    heavy = [name for name in heavy if name in sys.modules]
    print("imported:", heavy, file=sys.stderr)
atexit.register(tell)
"""


@pytest.mark.slow
def test_the_cpu_path_works_without_network_and_heavy_imports() -> None:
    code, found, said = doctor(NO_NETWORK)
    assert code == 0 and found["cpu"]["works"] and found["cpu"]["failed"] == []
    assert by_name(found)["the tiny policy"]["status"] == "ok"
    assert "imported: []" in said and "with simulated GPUs" in said
    assert all(check["remedy"] for check in found["checks"] if check["status"] != "ok")
    import torch

    if not torch.cuda.is_available():
        assert not found["gpu"]["works"] and "GPU" in found["gpu"]["failed"]


@pytest.mark.slow
def test_a_broken_torch_is_reported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('no\\nmore')")
    code, found, _ = doctor(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    checks = by_name(found)
    assert code == 2 and not found["cpu"]["works"] and not found["gpu"]["works"]
    assert checks["torch"]["status"] == "failed"
    assert "Error" in checks["torch"]["found"]
    assert "\n" not in checks["torch"]["found"]
    assert checks["the tiny policy"]["status"] == "failed"


def test_pins_agree_with_environment_yml() -> None:
    pins = pinned()
    assert "trl" in pins[""] and "unsloth" in pins["gpu"] and "torch" not in pins["gpu"]
    listed = re.findall(r"^ *- ([\w.-]+)==(\S+)$", (ROOT / "environment.yml").read_text(), re.M)
    assert {**pins[""], **pins["gpu"]}.items() <= dict(listed).items()


def test_missing_or_different_packages_are_reported_with_a_remedy() -> None:
    own = importlib.metadata.version("typer")
    found = packages(
        {
            "": {"typer": own, "rich": "0.0.1", "no-such-thing": "1.0"},
            "gpu": {"no-such-gpu-thing": "2.0"},
        }
    )
    assert [check.status for check in found] == ["ok", "warning", "failed", "warning"]
    assert "`pip install rich==0.0.1`" in found[1].remedy
    assert "`pip install no-such-thing==1.0`" in found[2].remedy
    assert [check.path for check in found] == ["cpu", "cpu", "cpu", "gpu"]
    assert packages({"": {}})[0].status == "warning"


def machine(**changed: Any) -> Any:
    """A simulated torch on a machine with an H100."""
    own = SimpleNamespace(name="NVIDIA H100", total_memory=85 * 10**9, major=9, minor=0)
    return SimpleNamespace(
        __version__="2.13.0+cu130",
        version=SimpleNamespace(cuda=changed.get("cuda", "13.0")),
        cuda=SimpleNamespace(
            is_available=lambda: changed.get("there", True),
            device_count=lambda: 1,
            get_device_properties=lambda number: SimpleNamespace(
                **{**vars(own), **changed.get("own", {})}
            ),
        ),
    )


def test_a_gpu_is_reported_with_memory_and_capability() -> None:
    found = gpus(machine())
    assert [check.status for check in found] == ["ok"]
    assert found[0].found == "NVIDIA H100, 79.2 GiB, compute capability 9.0"
    assert all(check.path == "gpu" for check in found)


@pytest.mark.parametrize(("changed", "statuses", "remedy"), examples("unsuitable_gpus"))
def test_an_unsuitable_gpu_is_reported_with_the_remedy(
    changed: JsonObject, statuses: list[str], remedy: str
) -> None:
    found = gpus(machine(**changed))
    assert [check.status for check in found] == statuses
    assert any(remedy in check.remedy for check in found)


def test_a_verdict_is_the_worst_status() -> None:
    ok, warned, failed = (Check(status, status, "") for status in ("ok", "warning", "failed"))
    assert verdict([ok, warned]) == {"works": True, "status": "warning", "failed": []}
    assert verdict([failed, warned, ok])["failed"] == ["failed"]


def test_the_command_shows_both_verdicts(cli: Cli) -> None:
    status, out, _ = cli("doctor")
    assert status == 0 and "CPU path: works" in out and "GPU path:" in out


@pytest.mark.parametrize(
    ("files", "allowed"),
    examples("memory_limits"),
)
def test_memory_here_includes_the_limit_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], allowed: int | None
) -> None:
    monkeypatch.setattr(module, "GROUPS", tmp_path)
    machine = memory_here()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert memory_here() == (allowed or machine)
