"""What is exported goes to a repository of the hub where one is named: a server on loopback
speaks the hub's API.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers import hub_server
from tests.helpers.hub_server import READER, WRITER, Hub, Shelf
from tests.helpers.tiny_model import make_policy
from tests.test_export import adapter_on
from workbench.policy import load_policy

Cli = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_server.logged_in(monkeypatch) as served:
        yield served


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = adapter_on(make_policy(tmp_path / "base"), tmp_path / "run")
    capsys.readouterr()  # its progress
    return made


def test_a_checkpoint_is_sent_as_it_lies_on_the_disk_and_only_its_owner_sees_it(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "merged"
    status, told, said = cli("export", run, "--merged", out, "--push", "ada/kern", "--json")
    found = json.loads(told)
    assert status == 0 and (found["repository"], found["private"], found["url"]) == (
        "ada/kern",
        True,
        f"{hub.url}/ada/kern",
    )
    sent = hub.repositories["ada/kern"].files
    local = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file()
    }
    assert (
        sent == {".gitattributes": b"", **local}
        and {"model.safetensors", "config.json", "README.md"} <= local.keys()
    )
    assert hub.repositories["ada/kern"].private
    # no path of this machine
    assert not [name for name, content in sent.items() if str(tmp_path).encode() in content]
    assert WRITER not in told + said
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    for name, content in sent.items():
        (fetched / name).write_bytes(content)
    load_policy(fetched, device="cpu")


def test_what_everybody_may_see_is_said(cli: Cli, hub: Hub, run: Path, tmp_path: Path) -> None:
    status, told, _ = cli(
        "export", run, "--merged", tmp_path / "merged", "--push", "ada/kern", "--public"
    )
    assert status == 0 and f"sent to {hub.url}/ada/kern, which everybody sees" in told
    assert not hub.repositories["ada/kern"].private
    status, _, said = cli("export", run, "--merged", tmp_path / "again", "--public")
    assert (
        status == 2
        and "name the repository with --push OWNER/NAME" in said
        and not (tmp_path / "again").exists()
    )


def test_nothing_is_sent_unless_a_repository_is_named(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    assert cli("export", run, "--merged", tmp_path / "merged")[0] == 0
    assert hub.asked == [] and hub.repositories == {}


@pytest.mark.parametrize(
    "name", ["kern", "ada/kern/1", "ada/", "ada/a b", "ada/a--b", "https://hub/ada/kern"]
)
def test_what_is_no_name_is_refused_before_anybody_is_asked(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path, name: str
) -> None:
    status, _, said = cli("export", run, "--merged", tmp_path / "merged", "--push", name)
    assert status == 2 and "write OWNER/NAME" in said and said.count("\n") == 1
    assert hub.asked == [] and not (tmp_path / "merged").exists()


def test_whoever_may_not_write_there_is_told_before_a_weight_is_read(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that cannot be merged."""
    from huggingface_hub import constants
    from safetensors.torch import load_file, save_file

    weights = run / "policy" / "adapter_model.safetensors"
    save_file({name: weight * float("inf") for name, weight in load_file(weights).items()}, weights)

    def refused(words: str, name: str = "ada/kern", *options: str) -> None:
        status, told, said = cli(
            "export", run, "--merged", tmp_path / "merged", "--push", name, *options
        )
        assert (status, told) == (2, "") and words in said and said.count("\n") == 1, said
        assert not (tmp_path / "merged").exists() and WRITER not in said and READER not in said

    refused('You may not create a model under the namespace "bob"', "bob/kern")
    monkeypatch.setenv("HF_TOKEN", READER)
    refused("check the owner's name, and that the token may write there")
    hub.repositories["ada/kern"] = Shelf(private=True)
    refused("You may not write here")
    monkeypatch.setenv("HF_TOKEN", WRITER)
    hub.repositories["ada/kern"] = Shelf(
        private=True, files={".gitattributes": b"", "adapter_config.json": b"{}"}
    )
    refused("'ada/kern' has 1 files already (adapter_config.json, …): name a new or an empty one")
    hub.repositories["ada/kern"] = Shelf(private=False)
    refused("is there and not private: change that on its page, or say --public")
    hub.repositories["ada/kern"] = Shelf(private=True)
    refused("is there and not public", "ada/kern", "--public")
    refused("is not finite")  # all is well there: now the weights are read
    asked = len(hub.asked)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    refused("`hf auth login` once, or set HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN", WRITER)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    refused("unset it, or leave out --push")
    assert len(hub.asked) == asked
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    refused("nothing can be pushed to 'ada/kern'")


def test_an_export_that_cannot_be_made_asks_nobody(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    assert cli("export", run, "--merged", tmp_path / "full", "--push", "ada/kern")[0] == 2
    assert (
        cli("export", tmp_path / "nowhere", "--merged", tmp_path / "merged", "--push", "ada/kern")[
            0
        ]
        == 2
    )
    assert hub.asked == []


def test_what_the_hub_does_not_take_stays_here_and_the_way_on_is_told(
    cli: Cli, hub: Hub, run: Path, tmp_path: Path
) -> None:
    hub.takes, out = False, tmp_path / "merged"
    status, told, said = cli("export", run, "--merged", out, "--push", "ada/kern", "--json")
    assert (
        (status, told) == (3, "")
        and "Storage limit reached" in said
        and f"`hf upload ada/kern {out} .` sends it later" in said
    )
    assert hub.repositories["ada/kern"].files == {".gitattributes": b""}
    load_policy(out, device="cpu")


@pytest.mark.slow
def test_a_process_of_its_own_sends_by_what_the_environment_says_and_goes_on_by_the_hubs_own_command(
    hub: Hub, run: Path, tmp_path: Path
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")
    }
    environment |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": WRITER, "HF_HOME": str(tmp_path / "home")}

    def called(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )

    hub.takes, out = False, str(tmp_path / "merged")
    done = called(
        sys.executable,
        "-m",
        "workbench.cli",
        "export",
        str(run),
        "--merged",
        out,
        "--push",
        "ada/kern",
    )
    assert done.returncode == 3 and f"`hf upload ada/kern {out} .`" in done.stderr
    hub.takes = True
    done = called(str(Path(sys.executable).parent / "hf"), "upload", "ada/kern", out, ".")
    assert done.returncode == 0, done.stderr
    sent = hub.repositories["ada/kern"].files
    assert sent.keys() == {".gitattributes", *(path.name for path in Path(out).iterdir())}
