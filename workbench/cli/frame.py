"""What all commands share: the app, options that occur often, exit codes, and ways to show a
result.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.exceptions import TyperException

from workbench import __version__
from workbench.types import WorkbenchError
from workbench.util import disk
from workbench.util.threads import DEFAULT_THREADS

ABSENT = "—"  # in a table, for what is not there
_CONTROLS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

app = typer.Typer(no_args_is_help=True, add_completion=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
WorldSeed = Annotated[int, typer.Option(help="Seed of the world.")]
Engine = Annotated[
    Literal["hf", "vllm"],
    typer.Option(
        help=(
            "What generates: transformers (hf), or vLLM, which has to be installed and is for a"
            " GPU. Greedy answers are the same but for rounding, sampled ones are others."
        )
    ),
]
SearchMode = Annotated[
    Literal["text", "dense", "hybrid"] | None,
    typer.Option(
        help=(
            "How the index is searched: by words, by vectors, or both, which is the default where"
            " it has any."
        )
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        help="A run's folder, a model's folder or public name; by default the bench's own policy."
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", "--kinds", metavar="KIND", help="Take only questions of this kind; repeatable."
    ),
]
Lang = Annotated[
    Literal["en", "l2"], typer.Option(help="The world's language to ask in; l2 is its second.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Take only so many questions.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads.")]
ThreadsOfAnActor = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=(
            f"CPU threads; by default {DEFAULT_THREADS}, and with --actors one, which each actor"
            " has."
        ),
    ),
]
Actors = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help=(
            "Sample in N of Ray's actors (extra ray), each on one CPU. The rows are those of"
            " --threads 1."
        ),
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="A Ray cluster; by default one is started, on 127.0.0.1 alone."
    ),
]
Bench = Annotated[
    str, typer.Option(help="The bench: tiny runs on a laptop; small and paper need --questions.")
]
Questions = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE", help="Data set or file of questions for the benches small and paper."
    ),
]

Judge = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=(
            "A language model behind an OpenAI-compatible endpoint judges. Its key is read from"
            " WORKBENCH_JUDGE_KEY or, for api.openai.com, OPENAI_API_KEY."
        ),
    ),
]
JudgeModel = Annotated[str | None, typer.Option(metavar="NAME", help="The endpoint's model.")]
StoreName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Evidence where questions and rows bring none: an index that `workbench index build`"
            " made."
        ),
    ),
]
JudgeCache = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keeps the judge's replies; by default beside what the command writes.",
    ),
]


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code. An error is one line; `--debug` prints its
    traceback before that line.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
    try:
        code = app(arguments, prog_name="workbench", standalone_mode=False) or 0
    # a usage error; without arguments at all its text is empty and the help is printed
    except TyperException as error:
        code = error.exit_code
        if message := error.format_message():
            command = getattr(getattr(error, "ctx", None), "command_path", "workbench")
            complain(f"{message.rstrip('.')}; `{command} --help` shows what there is")
    except Exception as error:  # any error is one line; --debug shows the traceback
        debug = "--debug" in arguments
        if debug:
            import traceback

            traceback.print_exc()
        if isinstance(error, WorkbenchError):
            code, message = error.code, str(error)
        elif disk.is_full(error):
            code, message = 130, disk.told(error)  # as after an interrupt, the same command resumes
        else:
            hint = "" if debug else " (`workbench --debug …` prints the traceback)"
            code, message = 1, f"{type(error).__name__}: {error}{hint}"
        complain(message)
        sys.exit(code)
    if code == 130:
        complain("interrupted; the same command takes up an unfinished run")
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"workbench {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: workbench demo")
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print tracebacks; stands before the command.")
    ] = False,
) -> None:
    """A workbench for making language models factual by reinforcement learning."""


@contextlib.contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Send what a library prints to stderr: trainers print their logs to stdout, where `--json`
    promises one object.
    """
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def ended_by_signal() -> Iterator[None]:
    """Let SIGTERM, as a batch system sends it, end the work as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def parse_columns(argument: str, fields: Sequence[str]) -> dict[str, str]:
    """Parse `--map response=output,id=key` into `{field: column}`."""
    pairs = [part.partition("=") for part in argument.split(",") if part.strip()]
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if wrong := [name for name, column in columns.items() if name not in fields or not column]:
        raise WorkbenchError(
            f"--map {argument}: write FIELD=COLUMN, not '{wrong[0]}'; the fields are"
            f" {', '.join(fields)}"
        )
    return columns


def complain(message: str) -> None:
    print("workbench:", " ".join(message.split()), file=sys.stderr)


def exit_code(result: Mapping[str, Any]) -> int:
    """The exit code for a result, by every `status` and `failed` in it."""
    parts = list(_mappings(result))
    statuses = {part.get("status") for part in parts}
    if "interrupted" in statuses:
        return 130
    if "too_many_failures" in statuses:
        return 4
    return 3 if any((_value(part.get("failed")) or 0) > 0 for part in parts) else 0


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """`value` and every mapping under it."""
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _mappings(item)


def show(
    result: Mapping[str, Any], as_json: bool, pretty: Callable[[Mapping[str, Any]], None]
) -> None:
    if as_json:
        print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    else:
        pretty(result)


def print_mapping(mapping: Mapping[str, Any]) -> None:
    """Print scalars as one table of names and values, then a table for every list or mapping."""
    nested = {
        key: value
        for key, value in mapping.items()
        if value and isinstance(value, (Mapping, list, tuple))
    }
    if scalars := [(key, text(value)) for key, value in mapping.items() if key not in nested]:
        print_table("", ("", ""), scalars)
    for key, value in nested.items():
        if isinstance(value, Mapping):
            print_table(key, ("", ""), [(str(name), text(item)) for name, item in value.items()])
        elif isinstance(value[0], Mapping):
            columns = list(value[0])
            print_table(
                key, columns, [[text(row.get(column)) for column in columns] for row in value]
            )
        else:
            print_table(key, ("",), [(text(item),) for item in value])


def text(value: Any) -> str:
    """A value as a table shows it: "—" for what is not there, "yes" and "no", "x, y" for a list,
    "a 1 · b 2" for a mapping.
    """
    if value is None or (isinstance(value, (Mapping, list, tuple, set, frozenset)) and not value):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return " · ".join(f"{name} {text(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(map(text, value))
    return str(value)


def printable(text: str) -> str:
    """Text of a model or a file as a terminal may have it: without control characters, which
    begin its commands, and without those that turn the direction of what follows. Line ends and
    tabs stay."""
    return _CONTROLS.sub("", text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if title:
        console.print(Text(title), soft_wrap=True)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, show_header=any(columns))
    for column in columns:
        table.add_column(Text(column))
    for row in rows:
        table.add_row(*map(Text, row))  # Text, so that a bracket in an answer is not read as markup
    console.print(table, Text())


def _value(cell: Any) -> float | None:
    return cell.get("value") if isinstance(cell, Mapping) else cell


def percent(cell: Any) -> str:
    value = _value(cell)
    if value is None:
        return ABSENT
    if not isinstance(cell, Mapping) or cell.get("low") is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f} [{100 * cell['low']:.0f},{100 * cell['high']:.0f}]"
