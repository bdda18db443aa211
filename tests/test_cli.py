"""The command line: help, exit codes, one-line errors, and only the result on stdout."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.helpers import Cli, examples, printed, refusal, run_python
from tests.helpers.small_bench import make_bench
from workbench import __version__
from workbench.cli.frame import TASKS, app, load
from workbench.util.jsonl import write_json


def commands(command: Any, path: str = "") -> Iterator[str]:
    """The registered commands, so that the tests cover new ones."""
    yield path
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, f"{path} {name}".strip())


load(None)
COMMANDS = list(commands(typer.main.get_command(app)))
SLOW = pytest.mark.slow
TRAIN = "train truthrl --out unused"
NO_BENCH = "workbench: no bench 'huge': choose one of tiny, small, paper\n"


@pytest.fixture
def small_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path / "policy")
    for module in ("experiments.run.bench", "experiments.evaluate.bench_of"):
        monkeypatch.setattr(f"workbench.{module}", lambda name, questions=None: bench)


@pytest.mark.parametrize("command", ["", *(pytest.param(c, marks=SLOW) for c in COMMANDS[1:])])
def test_help_has_an_example_and_a_short_option(cli: Cli, command: str) -> None:
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "") and f"Example: workbench {command}".rstrip() in out
    assert cli(command, "-h") == (code, out, err)


def test_help_lists_every_command_by_task(cli: Cli) -> None:
    _, out, _ = cli("--help")
    listed = [command for table in TASKS.values() for command in table]
    registered = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    assert {*listed} == registered | {group.name for group in app.registered_groups}
    places = [out.index(f"│ {name} ") for name in listed]
    assert places == sorted(places) and all(f" {task} " in out for task in TASKS)
    assert "--install-completion" in out


def test_help_joins_the_lines_of_a_paragraph(cli: Cli) -> None:
    group = typer.main.get_command(app)
    helps = {name: one.help for name, one in group.commands.items()}  # type: ignore[attr-defined]
    assert all("\n" not in text.replace("\n\n", "") for text in helps.values())
    first = {name: text.partition("\n\n")[0] for name, text in helps.items()}
    assert all(len(text) <= 90 for text in first.values())
    # `workbench --help` prints this table before the modules are loaded
    assert first == {name: text for table in TASKS.values() for name, text in table.items()}


@pytest.mark.parametrize(
    ("words", "loaded"),
    examples("imported_commands"),
)
def test_only_the_module_of_the_command_is_loaded(words: str, loaded: list[str]) -> None:
    probe = (
        "import atexit, sys; from workbench.cli import main\n"
        "ours = lambda: [n for n in sys.modules if n.startswith('workbench.')]\n"
        "atexit.register(lambda: print(*ours(), file=sys.stderr))\n"
        f"main({words.split()})"
    )
    modules = run_python("-c", probe).stderr.splitlines()[-1].split()
    frame = "cli cli.frame types util util.disk util.imports util.signals util.threads".split()
    assert sorted(modules) == sorted(
        f"workbench.{m}" for m in [*frame, *(f"cli.{c}" for c in loaded)]
    )


def test_help_keeps_brackets(cli: Cli) -> None:
    assert "[[run]]" in cli("queue --help")[1]


@pytest.mark.slow
def test_shell_completion_lists_commands() -> None:
    script = "from workbench.cli import main; main()"
    words = {"COMP_WORDS": "workbench comp", "COMP_CWORD": "1"}
    words["_WORKBENCH_COMPLETE"] = "complete_bash"
    assert run_python("-c", script, env=words).stdout.split() == ["compare"]


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"workbench {__version__}\n", "")


def test_required_commands_exist() -> None:
    wanted = (
        "score, agree, import, metrics, evaluate, probe, train, inspect, world export, index build,"
        " data show"
    )
    assert {*wanted.split(", ")} <= {*COMMANDS}


@pytest.mark.parametrize(
    ("command", "complaint"),
    examples("usage_errors"),
)
def test_usage_error_is_one_line(cli: Cli, command: str, complaint: str) -> None:
    err, (name, *more) = refusal(cli(command)), command.split()
    assert complaint in err and f"`workbench {f'{name} ' if more else ''}--help`" in err


def test_debug_prints_the_traceback(cli: Cli) -> None:
    _, _, err = cli(f"--debug {TRAIN} --bench huge")
    assert err.startswith("Traceback") and err.endswith(NO_BENCH)


@pytest.mark.parametrize(
    ("command", "function", "error", "status", "named"),
    [
        (TRAIN, "plan_run", ZeroDivisionError("by zero"), 1, "ZeroDivisionError: by zero|--debug"),
        ("demo", "run_demo", KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_unexpected_error_and_an_interrupt_are_one_line(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    function: str,
    error: BaseException,
    status: int,
    named: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(f"workbench.cli.train.{function}", fail)
    code, out, err = cli(command)
    assert (code, out, err.count("\n")) == (status, "", 1)
    assert all(text in err for text in named.split("|"))


def test_evaluate_prints_a_row_per_tier(cli: Cli, small_bench: None) -> None:
    code, out, _ = cli("evaluate sft --split test --kind single --samples 1 --limit 7")
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith(("all", "known"))]
    assert code == 0 and rows == [["all", "7"], ["known", "7"]] * 2
    assert "greedy, percent" in out and "sampled (Avg@1, T 1), percent" in out
    assert printed(cli("evaluate sft --split ood --samples 0 --json --lang l2"))["n"] == 3


@pytest.mark.parametrize(("report", "expected"), examples("exit_codes"))
def test_exit_codes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, report: dict[str, Any], expected: int
) -> None:
    monkeypatch.setattr("workbench.cli.train.evaluate_policy", lambda *_, **__: report)
    assert printed(cli("evaluate p --split ood --json"), expected) == report


@pytest.mark.parametrize("kinds", ["biography, single,", "single", "", None])
def test_evaluate_names_the_questions_of_a_training_that_it_does_not_ask(
    cli: Cli, small_bench: None, tmp_path: Path, kinds: str | None
) -> None:
    run = {"policy": "sft", "config": {"prompts": kinds and {"kinds": kinds}}}
    write_json(tmp_path / "config.json", run)  # the run whose policy lies in the folder
    command = f"evaluate {tmp_path / 'policy'} --split test --samples 0 --limit 2"
    code, out, err = cli(f"{command} --json")
    missing = ["biography"] if kinds and "biography" in kinds else None
    assert code == 0 and json.loads(out).get("missing_kinds") == missing
    assert ("of the kinds biography, which were not asked" in err) == bool(missing)
    assert cli(f"{command} --kind single")[2] == ""


def test_world_show(cli: Cli) -> None:
    described = printed(cli("world --json"))
    assert described["seed"] == 0 and described["pages"] > 0
    code, out, _ = cli("world --entity", described["examples"][0])
    assert code == 0
    assert described["examples"][0] in out and "relation" in out and "exposures" in out
    assert "no entity 'Nobody'" in refusal(cli("world --entity Nobody"))
