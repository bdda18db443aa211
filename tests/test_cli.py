"""The command line: help, exit codes, one-line errors, and a stdout that holds the result alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from workbench.cli import main
from workbench.types import WorkbenchError

COMMANDS = ["", "demo", "train", "evaluate", "world", "world show", "world export", "world build"]
TRAIN = ["train", "truthrl", "--out", "unused"]

Cli = Callable[..., tuple[int, str, str]]
Scores = dict[str, Any]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert isinstance(exit.value.code, int)
        out, err = (re.sub(r"\x1b\[[\d;]*m", "", text) for text in capsys.readouterr())  # some CI services force colours
        return exit.value.code, out, err

    return call


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, **functions: Callable[..., Any]) -> None:
    """Replace a library module, so that a command is tested without what it calls."""
    fake = ModuleType(module)
    fake.__dict__.update(functions)
    monkeypatch.setitem(sys.modules, module, fake)


def scores(accuracy: float) -> Scores:
    cell = {"value": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05}
    return {"n": 8, "accuracy": cell, "abstention": cell, "hallucination": cell, "truthfulness": cell, "failed": 0}


def report(**more: Any) -> dict[str, Any]:
    greedy = {**scores(0.5), "by_tier": {"known": scores(0.9), "page_only": scores(0.1)}, "by_kind": {}}
    return {"policy": "p", "split": "test", "n": 8, "seeds": [0], "greedy": greedy, "sampled": greedy, **more}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(cli: Cli, command: str) -> None:
    code, out, err = cli(*command.split(), "--help")
    assert code == 0
    assert f"Example: workbench {command}".rstrip() in out
    assert err == ""


def test_version(cli: Cli) -> None:
    from workbench import __version__

    assert cli("--version") == (0, f"workbench {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fly"], "No such command 'fly'"),
        (["--nonsense"], "No such option"),
        (["train", "truthrl"], "Missing option '--out'"),
        (["evaluate", "p", "--split", "train"], "'train' is not one of"),
        (["evaluate", "p", "--split", "test", "--threads", "0"], "greater than or equal to 1"),
    ],
)
def test_usage_error_is_one_line(cli: Cli, arguments: list[str], complaint: str) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    command = "workbench" if arguments[0] in ("fly", "--nonsense") else f"workbench {arguments[0]}"
    assert complaint in err and f"`{command} --help`" in err
    assert err.count("\n") == 1


def test_without_arguments_prints_help(cli: Cli) -> None:
    code, out, err = cli()
    assert code == 2
    assert "Usage" in out + err


def fail(*_: Any) -> None:
    raise WorkbenchError("there is no recipe 'truthrl':\nchoose another")


def crash(*_: Any) -> None:
    raise ZeroDivisionError("by zero")


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_user_mistake_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "workbench.recipes", train_recipe=fail)
    assert cli(*TRAIN) == (2, "", "workbench: there is no recipe 'truthrl': choose another\n")


def test_debug_prints_the_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "workbench.recipes", train_recipe=fail)
    code, out, err = cli("--debug", *TRAIN)
    assert (code, out) == (2, "")
    assert err.startswith("Traceback") and err.endswith("choose another\n")


def test_unexpected_error_names_debug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "workbench.recipes", train_recipe=crash)
    code, out, err = cli(*TRAIN)
    assert (code, out) == (1, "")
    assert "ZeroDivisionError: by zero" in err and "--debug" in err
    assert err.count("\n") == 1


def test_interrupt(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "workbench.demo", run_demo=interrupt)
    code, out, err = cli("demo")
    assert (code, out) == (130, "")
    assert err.count("\n") == 1


def test_train_passes_its_arguments(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    summary = {"method": "truthrl", "seed": 3, "before": report(), "after": report(), "status": "done"}

    def train_recipe(*arguments: Any) -> dict[str, Any]:
        seen.extend(map(str, arguments))
        print("a trainer's log line")
        return summary

    stand_in(monkeypatch, "workbench.recipes", train_recipe=train_recipe)
    sets = ["--set", "truthrl.reward=binary", "--set", "truthrl.beta=0.1"]
    code, out, err = cli(*TRAIN, "--seed", "3", "--steps", "5", *sets, "--json")
    assert code == 0
    assert seen == ["truthrl", "tiny", "3", "unused", "5", "None", "['truthrl.reward=binary', 'truthrl.beta=0.1']", "None"]
    assert json.loads(out) == summary
    assert err == "a trainer's log line\n"
    code, out, _ = cli(*TRAIN)
    assert code == 0
    assert "before" in out and "after" in out and "50.0 [45,55]" in out


def test_evaluate_prints_a_row_per_tier(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def evaluate_policy(*arguments: Any) -> dict[str, Any]:
        seen.extend(arguments)
        return report()

    stand_in(monkeypatch, "workbench.evaluate", evaluate_policy=evaluate_policy)
    code, out, _ = cli("evaluate", "p", "--split", "test", "--kind", "single", "--kind", "list", "--limit", "7")
    assert code == 0
    assert seen == ["p", "test", "tiny", 4, 0, 7, ["single", "list"], 2, None]
    assert "90.0 [85,95]" in out and "page_only" in out and "sampled" in out


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"failed": 0}, 0),
        ({"failed": 2}, 3),
        ({"greedy": {**scores(0.5), "failed": 1}}, 3),
        ({"sampled": {**scores(0.5), "failed": {"value": 0.25, "low": 0.1, "high": 0.4}}}, 3),
        ({"sampled": None}, 0),
        ({"status": "too_many_failures", "failed": 9}, 4),
        ({"status": "interrupted"}, 130),
    ],
)
def test_exit_codes(cli: Cli, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], expected: int) -> None:
    stand_in(monkeypatch, "workbench.evaluate", evaluate_policy=lambda *_: report(**more))
    code, out, _ = cli("evaluate", "p", "--split", "ood", "--json")
    assert code == expected
    assert json.loads(out) == report(**more)


def test_world_commands(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    described = {
        "name": "Ann [b]",
        "facts": [{"relation": "born in", "object": "Oslo"}],
        "pages": ["Ann"],
        "n": {"a": 1},
    }
    stand_in(monkeypatch, "workbench.world.show", describe=lambda name, seed: {**described, "seed": seed})
    stand_in(monkeypatch, "workbench.world.export", export_world=lambda out, seed: {"facts": 12})
    stand_in(monkeypatch, "workbench.world.policy", build_policy=lambda *arguments: {"size": arguments[3]})
    code, out, _ = cli("world", "show", "--entity", "Ann [b]")
    assert code == 0
    assert "Ann [b]" in out and "born in" in out and "Oslo" in out
    assert json.loads(cli("world", "show", "--seed", "4", "--json")[1]) == {**described, "seed": 4}
    assert "12" in cli("world", "export", "--out", "unused")[1]
    assert json.loads(cli("world", "build", "--out", "unused", "--size", "small", "--json")[1]) == {"size": "small"}
