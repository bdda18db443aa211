"""The command line: `workbench …`. Commands only read arguments, call one function of the library and print its result.

Results go to stdout and everything else to stderr, so `--json` can be piped. A command returns its exit code: 0 done,
2 bad input, 3 done with failed rows, 4 stopped by the failure limit, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.exceptions import TyperException

from workbench import __version__
from workbench.metrics import RATES
from workbench.threads import DEFAULT_THREADS
from workbench.types import WorkbenchError

app = typer.Typer(no_args_is_help=True, add_completion=False)
world_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    world_app,
    name="world",
    help="The closed world whose truth is known exactly: show it, export it, teach it to a model.",
    epilog='Example: workbench world show --entity "Dramem Torusin"',
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
WorldSeed = Annotated[int, typer.Option(help="Seed of the world.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads.")]
Bench = Annotated[str, typer.Option(help="The bench: tiny runs on a laptop; small and paper need --questions.")]
Questions = Annotated[Path | None, typer.Option(help='JSONL of {"id", "question", "answers"} for the benches small and paper.')]


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code. An error is one line; `--debug` prints its traceback before that line."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = app(arguments, prog_name="workbench", standalone_mode=False) or 0
    except TyperException as error:  # a usage error; without arguments at all its text is empty and the help is printed
        code = error.exit_code
        if message := error.format_message():
            command = getattr(getattr(error, "ctx", None), "command_path", "workbench")
            _complain(f"{message.rstrip('.')}; `{command} --help` shows what there is")
    except Exception as error:
        expected = isinstance(error, WorkbenchError)
        code = error.code if isinstance(error, WorkbenchError) else 1
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        hint = "" if expected or "--debug" in arguments else " (`workbench --debug …` prints the traceback)"
        _complain(str(error) if expected else f"{type(error).__name__}: {error}{hint}")
    if code == 130:
        _complain("interrupted; the same command takes up an unfinished run")
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"workbench {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: workbench demo")
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print tracebacks; stands before the command.")] = False,
) -> None:
    """A workbench for making language models factual by reinforcement learning."""


@app.command(epilog="Example: workbench demo --seed 2 --out runs/demo-2")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demo writes.")] = Path("runs/demo"),
    seed: Seed = 1,
    threads: Threads = DEFAULT_THREADS,
) -> int:
    """Train a tiny model to answer what it knows and to pass on what it does not, and show the difference."""
    from workbench.demo import run_demo

    return _exit_code(run_demo(out, seed, threads))


@app.command(epilog="Example: workbench train truthrl --out runs/truthrl --set truthrl.reward=binary")
def train(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, such as truthrl.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an unfinished one is resumed.")],
    bench: Bench = "tiny",
    seed: Seed = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps instead of the recipe's own number.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; by default 2, or those that the run was begun with.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="RECIPE.FIELD=VALUE", help="Change a field of the recipe.")
    ] = None,
    questions: Questions = None,
    as_json: Json = False,
) -> int:
    """Train a policy by a recipe and evaluate it before and after."""
    from workbench.recipes import train_recipe

    with _stdout_kept_clean():
        summary = train_recipe(recipe, bench, seed, out, steps, threads, overrides or [], questions)
    _show(summary, as_json, _print_summary)
    return _exit_code(summary)


@app.command(epilog="Example: workbench evaluate runs/truthrl --split test --json")
def evaluate(
    policy: Annotated[str, typer.Argument(help="A run's folder, a model's folder or a model's public name.")],
    split: Annotated[Literal["validation", "test", "ood"], typer.Option(help="Which questions to ask.")],
    bench: Bench = "tiny",
    samples: Annotated[int, typer.Option(min=0, help="Sampled answers per question, beside the greedy one.")] = 4,
    seed: Seed = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only so many questions.")] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Ask only questions of this kind; repeatable.")
    ] = None,
    threads: Threads = DEFAULT_THREADS,
    questions: Questions = None,
    lang: Annotated[Literal["en", "l2"], typer.Option(help="The world's language to ask in; l2 is its second.")] = "en",
    as_json: Json = False,
) -> int:
    """Measure how often a policy is right, abstains and hallucinates, with 95% intervals."""
    from workbench.evaluate import evaluate_policy

    with _stdout_kept_clean():
        report = evaluate_policy(policy, split, bench, samples, seed, limit, kinds or None, threads, questions, lang)
    _show(report, as_json, _print_report)
    return _exit_code(report)


@world_app.command("show", epilog='Example: workbench world show --entity "Dramem Torusin" --json')
def world_show(
    entity: Annotated[str | None, typer.Option(help="Name of one entity; without it, the world in numbers.")] = None,
    seed: WorldSeed = 0,
    as_json: Json = False,
) -> None:
    """Show the world in numbers, or everything that is true of one entity."""
    from workbench.world.show import describe

    _show(describe(entity, seed), as_json, _print_mapping)


@world_app.command("export", epilog="Example: workbench world export --out runs/world")
def world_export(
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    seed: WorldSeed = 0,
    as_json: Json = False,
) -> None:
    """Write entities, facts, pages, questions and training documents as JSONL files."""
    from workbench.world.export import export_world

    with _stdout_kept_clean():
        counts = export_world(out, seed)
    _show(counts, as_json, _print_mapping)


@world_app.command("build", epilog="Example: workbench world build --out runs/policy --size small")
def world_build(
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    seed: WorldSeed = 0,
    threads: Threads = DEFAULT_THREADS,
    size: Annotated[Literal["full", "small"], typer.Option(help="How large a model to train.")] = "full",
    as_json: Json = False,
) -> None:
    """Train the tiny model that has read the world's documents: the policy that the recipes start from."""
    from workbench.world.policy import build_policy

    with _stdout_kept_clean():
        card = build_policy(out, seed, threads, size)
    _show(card, as_json, lambda _: print((out / "README.md").read_text()))


@contextlib.contextmanager
def _stdout_kept_clean() -> Iterator[None]:
    """Send what a library prints to stderr: trainers print their logs to stdout, where `--json` promises one object."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _complain(message: str) -> None:
    print("workbench:", " ".join(message.split()), file=sys.stderr)


def _exit_code(result: Mapping[str, Any]) -> int:
    """The code for a result whose `status` and `failed`, wherever they stand in it, say how it went."""
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


def _show(result: Mapping[str, Any], as_json: bool, pretty: Callable[[Mapping[str, Any]], None]) -> None:
    if as_json:
        print(json.dumps(result, ensure_ascii=False, allow_nan=False))
    else:
        pretty(result)


def _print_report(report: Mapping[str, Any]) -> None:
    for decoding in ("greedy", "sampled"):
        scores = report.get(decoding) or {}
        if scores.get("n"):  # nothing was sampled with `--samples 0`
            tiers = {"all": scores, **scores.get("by_tier", {})}
            title = f"{report['policy']} on {report['split']}: {decoding}, percent [95% interval]"
            rows = [(tier, str(row["n"]), *(_percent(row.get(m)) for m in RATES)) for tier, row in tiers.items()]
            _table(title, ("tier", "n", *RATES), rows)


def _print_summary(summary: Mapping[str, Any]) -> None:
    before, after = ((summary.get(when) or {}).get("greedy", {}) for when in ("before", "after"))
    title = f"{summary['method']}, seed {summary['seed']}: greedy answers, percent [95% interval]"
    _table(title, ("", "before", "after"), [(m, _percent(before.get(m)), _percent(after.get(m))) for m in RATES])


def _print_mapping(mapping: Mapping[str, Any]) -> None:
    """Scalars as one table of names and values, then a table for every list or mapping under its name."""
    nested = {key: value for key, value in mapping.items() if value and isinstance(value, (Mapping, list, tuple))}
    if scalars := [(key, str(value)) for key, value in mapping.items() if key not in nested]:
        _table("", ("", ""), scalars)
    for key, value in nested.items():
        if isinstance(value, Mapping):
            _table(key, ("", ""), [(str(name), str(item)) for name, item in value.items()])
        elif isinstance(value[0], Mapping):
            columns = list(value[0])
            _table(key, columns, [[str(row.get(column, "")) for column in columns] for row in value])
        else:
            _table(key, ("",), [(str(item),) for item in value])


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
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


def _percent(cell: Any) -> str:
    value = _value(cell)
    if value is None:
        return "–"
    if not isinstance(cell, Mapping) or cell.get("low") is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f} [{100 * cell['low']:.0f},{100 * cell['high']:.0f}]"


if __name__ == "__main__":
    main()
