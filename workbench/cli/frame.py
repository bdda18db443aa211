"""Shared parts of the commands: the app, common options, exit codes, and output."""

import contextlib
import importlib
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from typer import Exit, Option, Typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from workbench import __version__
from workbench.types import JsonMapping, WorkbenchError
from workbench.util import disk
from workbench.util.imports import light_transformers
from workbench.util.signals import handled_signals
from workbench.util.threads import DEFAULT_THREADS

ABSENT = "—"  # a missing value in a table
Cell = JsonMapping | float | None  # a metric: {"value", "low", "high"} or a number
# control characters, marks that change the direction of text, line separators and lone surrogates
_CONTROLS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# task -> command -> first line of its help
TASKS = {
    "Score answers": {
        "score": "Score responses: extract claims, verify them and compute rewards.",
        "metrics": "Measure the factuality of judged responses.",
        "agree": "Compare the labels of two feedback files.",
        "import": "Convert completions and rewards in logs of TRL or verl to feedback rows.",
        "index": "Build and search indexes of passages.",
        "data": "Show data sets and files of questions.",
        "verifier": "Calibrate and evaluate local verifiers of claims.",
        "judge": "Serve a language model as a judge.",
    },
    "Train": {
        "methods": "List the methods, or the settings of one method.",
        "train": "Train a policy with a method, and evaluate it before and after.",
        "queue": "Train the runs of a file in order.",
        "plan": "Estimate the memory, hours and judge requests of a training.",
        "klcf": "Prepare KLCF's training data: checklists and labelled claims of the base model.",
        "export": "Merge a trained adapter into its base model, or write claims as a table.",
        "demo": "Train the tiny policy with TruthRL's two rewards, and compare the results.",
        "doctor": "Check whether this machine can run the workbench.",
    },
    "Compare and evaluate": {
        "evaluate": "Measure a policy's accuracy, abstention and hallucination, with intervals.",
        "probe": "Measure the boundary of a policy's knowledge.",
        "compare": "Compare the evaluations of runs, their settings and their cost.",
        "scorecard": "Show which findings of the papers hold here, or measure them again.",
    },
    "Look": {
        "inspect": "Open the reward inspector in a browser.",
        "answer": "Answer a question from passages, with the sources of every sentence.",
        "world": "Show and export the closed world, and train a tiny model on it.",
    },
}
# modules of the commands that have no module of their own
MODULES = {"agree": "score", "import": "score", "demo": "train", "evaluate": "train"}


class Commands(TyperGroup):
    """A group of commands. Single line breaks in the help of a command become spaces."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in self.commands.values():
            # a single line break only wraps the docstring; an empty line separates paragraphs
            command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
            for parameter in command.params:
                # rich, which prints the help, would read "[…]" as the name of a style
                if text := getattr(parameter, "help", None):
                    parameter.help = text.replace("[", r"\[")  # type: ignore[attr-defined]


class Root(Commands):
    """The group of all commands, whose help lists them by task.

    The list can be printed without loading the modules of the commands, because the table `TASKS`
    has a help text for each command.
    """

    def __init__(self, commands: Mapping[str, TyperCommand], **settings: Any) -> None:
        listed: dict[str, TyperCommand] = {}
        for task, table in TASKS.items():
            for name, summary in table.items():
                listed[name] = commands.get(name) or TyperCommand(name, help=summary)
                listed[name].rich_help_panel = task
        super().__init__(commands=listed, **settings)


app = Typer(
    cls=Root, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
)


def add_group(
    name: str, help: str, example: str, alone: Callable[..., None] | None = None
) -> Typer:
    """Add a group of commands, such as `workbench index …`, to the app, and return the group.

    Args:
        help: help text of the group.
        example: a command line for the help, without "workbench".
        alone: function to call if no command follows the group's name; None to print the help.
    """
    group = Typer(cls=Commands, no_args_is_help=alone is None)
    # a callback, because typer turns a group with one command and no callback into this command
    group.callback(invoke_without_command=alone is not None)(alone or (lambda: None))
    app.add_typer(group, name=name, help=help, epilog=f"Example: workbench {example}")
    return group


Json = Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, Option(min=0, max=2**32 - 1, help="Random seed.")]
WorldSeed = Annotated[int, Option(help="Seed of the world.")]
Engine = Annotated[
    Literal["hf", "vllm"],
    Option(
        help="Generation by transformers (hf), or by vLLM, which must be installed and needs a GPU."
        " Greedy answers agree up to rounding; sampled answers differ."
    ),
]
SearchMode = Annotated[
    Literal["text", "dense", "hybrid"] | None,
    Option(help="Search the index by words, by vectors, or by both; default: hybrid with vectors."),
]
Policy = Annotated[
    str | None,
    Option(
        help="A run's folder, a model's folder or public name; on the bench tiny also sft or"
        " base. Default: the bench's policy."
    ),
]
Kinds = Annotated[
    list[str] | None,
    Option(
        "--kind", "--kinds", metavar="KIND", help="Use only questions of this kind; repeatable."
    ),
]
Lang = Annotated[
    Literal["en", "l2"],
    Option(help="Language of the questions; l2 is the closed world's second language."),
]
Limit = Annotated[int | None, Option(min=1, help="Maximum number of questions.")]
Threads = Annotated[int, Option(min=1, help="CPU threads.")]
ActorThreads = Annotated[
    int | None,
    Option(min=1, help=f"CPU threads; default: {DEFAULT_THREADS}, or one per actor with --actors."),
]
Actors = Annotated[
    int | None,
    Option(
        min=1,
        metavar="N",
        help="Sample in N Ray actors (extra ray), each on one CPU. The rows equal those of"
        " --threads 1.",
    ),
]
Address = Annotated[
    str | None, Option(metavar="HOST:PORT", help="A Ray cluster; default: start one on 127.0.0.1.")
]
Bench = Annotated[
    str,
    Option(
        help="The bench: tiny (a closed world), small (real facts) or paper (needs --questions)."
    ),
]
Questions = Annotated[
    str | None,
    Option(
        metavar="NAME|FILE",
        help="Data set or file of questions for the benches small and paper. A hash of its ids"
        " divides the data set or file into the splits rl (80 %), validation and test.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    Option("--set", metavar="METHOD.FIELD=VALUE", help="Change a setting; repeatable."),
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Print the judge's calls and tokens; send and write nothing.")
]


def load(command: str | None) -> None:
    """Load the module of a command, if there is such a command; None loads all modules."""
    for name in chain(*TASKS.values()):
        if command in (None, name):
            importlib.import_module(f"workbench.cli.{MODULES.get(name, name)}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line `argv`, by default `sys.argv[1:]`, and exit with its exit code.

    An error is printed on stderr as one line. With `--debug`, its traceback is printed first.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # print a warning as one line, without the path of the file that caused it
    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
    words = (word for word in arguments if not word.startswith("-"))
    # a shell that completes a command passes it in the environment
    load(None if "_WORKBENCH_COMPLETE" in os.environ else next(words, ""))
    try:
        with light_transformers():
            code = app(arguments, prog_name="workbench", standalone_mode=False) or 0
    # a usage error; without any arguments its text is empty, because the help is printed
    except TyperException as error:
        code = error.exit_code
        if message := error.format_message():
            command = getattr(getattr(error, "ctx", None), "command_path", "workbench")
            complain(f"{message.rstrip('.')}; see `{command} --help`")
    except Exception as error:  # the outermost handler: an error is one line, not a traceback
        debug = "--debug" in arguments
        if debug:
            import traceback

            print(printable(traceback.format_exc()), file=sys.stderr)
        if isinstance(error, WorkbenchError):
            code, message = error.code, str(error)
        elif disk.is_full(error):
            # like an interrupt: the same command resumes
            code, message = 130, disk.full_message(error)
        else:
            hint = "" if debug else " (`workbench --debug …` prints the traceback)"
            code, message = 1, f"{type(error).__name__}: {error}{hint}"
        complain(message)
        sys.exit(code)
    if code == 130:
        complain("interrupted; the same command resumes an unfinished run")
    sys.exit(code)


def _version(requested: bool) -> None:
    if requested:
        print(f"workbench {__version__}")
        raise Exit


@app.callback(epilog="Example: workbench demo")
def root(
    version: Annotated[
        bool,
        Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool, Option("--debug", help="Print tracebacks; goes before the command.")
    ] = False,
) -> None:
    """A workbench for making language models factual by reinforcement learning."""


@contextlib.contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Redirect stdout to stderr, as a context manager.

    Trainers print to stdout. With `--json`, only the JSON object may be on stdout.
    """
    with contextlib.redirect_stdout(sys.stderr):
        yield


def ended_by_signal() -> contextlib.AbstractContextManager[None]:
    """Return a context manager in which SIGTERM raises a KeyboardInterrupt, like Ctrl-C."""
    # batch systems send SIGTERM to stop a process
    return handled_signals(signal.default_int_handler, signal.SIGTERM)


def parse_columns(argument: str, fields: Sequence[str]) -> dict[str, str]:
    """Parse the value of `--map`: "response=output,id=key" → {"response": "output", "id": "key"}.

    Raises:
        WorkbenchError: a field is not among the allowed `fields`, or has no column.
    """
    pairs = [part.partition("=") for part in argument.split(",") if part.strip()]
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if wrong := [name for name, column in columns.items() if name not in fields or not column]:
        problem = "has no column" if wrong[0] in fields else "is not a field"
        raise WorkbenchError(
            f"--map {argument}: '{wrong[0]}' {problem}: write FIELD=COLUMN; the fields are"
            f" {', '.join(fields)}"
        )
    return columns


def complain(message: str) -> None:
    """Print a message on stderr as one line that begins with "workbench:"."""
    print("workbench:", " ".join(printable(message).split()), file=sys.stderr)


def exit_code(result: JsonMapping) -> int:
    """Return the exit code of a command from its result.

    The entries "status" and "failed" decide. They may be in the result, or in mappings nested in
    it. The first rule that applies gives the code:

    * 130: a "status" is "interrupted".
    * 4: a "status" is "too_many_failures".
    * 3: a number "failed" is above 0.
    * 0: no other rule applies.
    """
    parts = list(_mappings(result))
    statuses = {part.get("status") for part in parts}
    # an interrupt comes first: the result is incomplete, whatever failed before
    if "interrupted" in statuses:
        return 130
    if "too_many_failures" in statuses:
        return 4
    failed = [_value(part.get("failed")) for part in parts]
    return 3 if any(isinstance(value, int | float) and value > 0 for value in failed) else 0


def _mappings(value: object) -> Iterator[JsonMapping]:
    """Yield `value` if it is a mapping, and every mapping nested in it. Lists are not searched."""
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _mappings(item)


def show(
    result: JsonMapping, as_json: bool, pretty: Callable[[JsonMapping], None] | None = None
) -> int:
    """Print a command's result, and return its exit code.

    Args:
        result: the result, a mapping of JSON values.
        as_json: True prints the result as one JSON object.
        pretty: function that prints the result if `as_json` is False; None for `print_mapping`.
    """
    if as_json:
        # NaN is not JSON, so it raises instead of reaching another program's parser
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
        print(_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
    else:
        (pretty or print_mapping)(result)
    return exit_code(result)


def print_mapping(mapping: JsonMapping) -> None:
    """Print a mapping as tables on stdout.

    The first table has the name and value of each text, number and other scalar. Each non-empty
    list or mapping gets a table of its own, with its name as the title.
    """
    nested = {k: v for k, v in mapping.items() if v and isinstance(v, Mapping | list | tuple)}
    if scalars := [(key, text(value)) for key, value in mapping.items() if key not in nested]:
        print_table("", ("", ""), scalars)
    for key, value in nested.items():
        columns = [""]
        if isinstance(value, Mapping):
            columns, rows = ["", ""], [[str(name), text(item)] for name, item in value.items()]
        elif isinstance(value[0], Mapping):
            columns = list(value[0])
            rows = [[text(row.get(column)) for column in columns] for row in value]
        else:
            rows = [[text(item)] for item in value]
        print_table(key, columns, rows)


def text(value: object) -> str:
    """Format a value for a table.

    None → "—", ["x", "y"] → "x, y", {"a": 1, "b": 2} → "a 1 · b 2".
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, Collection) and not value):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return " · ".join(f"{name} {text(item)}" for name, item in value.items())
    if isinstance(value, Collection):
        return ", ".join(map(text, value))
    return str(value)


def printable(text: str) -> str:
    """Return a text without the characters that could control a terminal or reorder text.

    These are control characters except line breaks and tabs, text-direction marks, line separators
    and lone surrogates. `complain` and `print_table` call this function.
    """
    # they could command a terminal or reorder text
    return _CONTROLS.sub("", text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout. It has no header if all column names are empty."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def cell(text: str) -> Text:
        return Text(printable(text))  # Text: brackets in an answer are not markup

    # only a terminal has a width; 200 columns in a pipe keep names on one line
    console = Console(width=None if sys.stdout.isatty() else 200)
    if title:
        console.print(cell(title), soft_wrap=True)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, show_header=any(columns))
    for column in columns:
        table.add_column(cell(column), overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    console.print(table, Text())


def _value(cell: Cell) -> float | None:
    """Return the number in `cell`, which is {"value": number, …}, a number or None."""
    return cell.get("value") if isinstance(cell, Mapping) else cell


def percent(cell: Cell, scale: float = 100.0, digits: int = 0) -> str:
    """Format a metric in percent: "52.3 [50, 55]" with an interval, else "52.3".

    Args:
        cell: a number, or a mapping with "value" and, for an interval, "low" and "high". Without a
            value, the result is "—".
        scale: factor for the number: 100 for shares, 1 for other numbers.
        digits: number of decimals of the interval.
    """
    value = _value(cell)
    if value is None:
        return ABSENT
    if not isinstance(cell, Mapping) or cell.get("low") is None:
        return f"{scale * value:.1f}"
    low, high = (f"{scale * cell[bound]:.{digits}f}" for bound in ("low", "high"))
    return f"{scale * value:.1f} [{low}, {high}]"
