"""The command line: help, exit codes, one-line errors, and only the result on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.helpers.small_bench import make_bench
from workbench import __version__
from workbench.cli.frame import TASKS, app


def commands(command: Any, path: str = "") -> Iterator[str]:
    """The registered commands, so that the tests cover new ones."""
    yield path
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, f"{path} {name}".strip())


COMMANDS = list(commands(typer.main.get_command(app)))
TRAIN = ["train", "truthrl", "--out", "unused"]
NO_BENCH = "workbench: no bench 'huge': choose one of tiny, small, paper\n"

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def small_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path / "policy")
    for module in ("experiments.experiment.bench", "experiments.evaluate.bench_of"):
        monkeypatch.setattr(f"workbench.{module}", lambda name, questions=None: bench)


def stand_in(
    monkeypatch: pytest.MonkeyPatch, command: str, **functions: Callable[..., Any]
) -> None:
    """Replace functions that a command's module calls."""
    for name, function in functions.items():
        monkeypatch.setattr(f"workbench.cli.{command}.{name}", function)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(cli: Cli, command: str) -> None:
    code, out, err = cli(*command.split(), "--help")
    assert code == 0
    assert f"Example: workbench {command}".rstrip() in out
    assert err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_h_is_help(cli: Cli, command: str) -> None:
    assert cli(*command.split(), "-h") == cli(*command.split(), "--help")


def test_help_lists_every_command_by_task(cli: Cli) -> None:
    _, out, _ = cli("--help")
    listed = [
        command for names in TASKS.values() for command in names.split() if command in COMMANDS
    ]
    assert {*listed} == {command.split()[0] for command in COMMANDS if command}
    places = [out.index(f"│ {name} ") for name in listed]
    assert places == sorted(places) and all(f" {task} " in out for task in TASKS)
    assert "--install-completion" in out


def test_help_joins_the_lines_of_a_paragraph(cli: Cli) -> None:
    group = typer.main.get_command(app)
    helps = [command.help for command in group.commands.values()]  # type: ignore[attr-defined]
    assert all("\n" not in text.replace("\n\n", "") for text in helps)
    assert all(len(text.partition("\n\n")[0]) <= 90 for text in helps)


def test_help_keeps_brackets(cli: Cli) -> None:
    assert "[[run]]" in cli("queue", "--help")[1]


def test_completion_knows_the_commands() -> None:
    words = {"COMP_WORDS": "workbench comp", "COMP_CWORD": "1"}
    completed = subprocess.run(
        [sys.executable, "-c", "from workbench.cli import main; main()"],
        env={**os.environ, **words, "_WORKBENCH_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
    )
    assert completed.stdout.split() == ["compare"]


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"workbench {__version__}\n", "")


def test_the_commands_of_the_contract_are_there() -> None:
    wanted = (
        "score, agree, import, metrics, evaluate, probe, train, inspect, world export, index build,"
        " data show, verifier train"
    )
    assert {*wanted.split(", ")} <= {*COMMANDS}


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


def crash(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("by zero")


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_debug_prints_the_traceback(cli: Cli) -> None:
    code, out, err = cli("--debug", *TRAIN, "--bench", "huge")
    assert (code, out) == (2, "")
    assert err.startswith("Traceback") and err.endswith(NO_BENCH)


def test_unexpected_error_names_debug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "train", run=crash)
    code, out, err = cli(*TRAIN)
    assert (code, out) == (1, "")
    assert "ZeroDivisionError: by zero" in err and "--debug" in err
    assert err.count("\n") == 1


def test_interrupt(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "train", run_demo=interrupt)
    code, out, err = cli("demo")
    assert (code, out) == (130, "")
    assert err.count("\n") == 1


def test_evaluate_prints_a_row_per_tier(cli: Cli, small_bench: None) -> None:
    words = "evaluate sft --split test --kind single --samples 1 --limit 7".split()
    code, out, _ = cli(*words)
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith(("all", "known"))]
    assert code == 0 and rows == [["all", "7"], ["known", "7"]] * 2
    assert "greedy, percent" in out and "sampled (Avg@1, T 1), percent" in out
    code, out, _ = cli(*"evaluate sft --split ood --samples 0 --json --lang l2".split())
    assert code == 0 and json.loads(out)["n"] == 3


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"failed": 0}, 0),
        ({"greedy": {"failed": 1}}, 3),
        ({"sampled": {"failed": {"value": 0.25, "low": 0.1, "high": 0.4}}}, 3),
        ({"status": "too_many_failures", "failed": 9}, 4),
        ({"status": "interrupted"}, 130),
    ],
)
def test_exit_codes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, report: dict[str, Any], expected: int
) -> None:
    stand_in(monkeypatch, "train", evaluate_policy=lambda *_, **__: report)
    code, out, _ = cli("evaluate", "p", "--split", "ood", "--json")
    assert (code, json.loads(out)) == (expected, report)


def test_world_show(cli: Cli) -> None:
    code, out, _ = cli("world", "--json")
    described = json.loads(out)
    assert code == 0 and described["seed"] == 0 and described["pages"] > 0
    code, out, _ = cli("world", "--entity", described["examples"][0])
    assert code == 0
    assert described["examples"][0] in out and "relation" in out and "exposures" in out
    code, out, err = cli("world", "--entity", "Nobody")
    assert (code, out) == (2, "") and "no entity 'Nobody'" in err and err.count("\n") == 1
