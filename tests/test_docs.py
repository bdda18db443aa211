"""Every command in README.md and docs/ exists, and docs/commands.md can be followed from start to
end.

`examples/commands.tsv` says how a test runs each command: unchanged, with options that shorten it,
or not at all, with the reason. Commands that are not in this file, or on no page, fail the tests.
"""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import EXAMPLES, ROOT, read_json, write_json
from tests.helpers.score_helpers import reply, write
from workbench.cli import main
from workbench.cli.frame import app, load
from workbench.methods import TRAINED
from workbench.util.config import find

PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
# not in the base install
EXTRAS = ("gradio", "anywidget", "ipywidgets", "unsloth", "vllm", "openai", "playwright")
JUDGE = "http://127.0.0.1:8000/v1"  # replaced by a test server
# page -> command -> options that shorten it here, reason not to run it
KNOWN: dict[str, dict[str, tuple[str, str]]] = {}
for line in (EXAMPLES / "commands.tsv").read_text().splitlines()[1:]:
    page, command, more, not_run = (line + "\t\t").split("\t")[:4]
    KNOWN.setdefault(page, {})[command] = (more, not_run)
load(None)  # `parse` and `examples` need all commands
BETWEEN = {  # inline commands, run after the blocks
    "docs/commands.md": (
        (
            "workbench score --in runs/judged/rollouts.jsonl --out runs/again/rollouts.jsonl"
            " --method rlfh --set rlfh.alpha=2"
        ),
    )
}


def blocks(page: str) -> list[str]:
    """The shell blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    languages = re.findall(r"^```(.*)$", text, re.M)[::2]
    assert set(languages) <= {"sh", "python", "yaml", ""}, (
        f"{page}: a block of {languages} is no block that this test knows"
    )
    return re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M)


def commands(page: str) -> list[str]:
    """The commands of a page in order, each on one line, without comments; here-documents are
    included.
    """
    found: list[str] = []
    for block in blocks(page):
        lines = re.sub(r" *\\\n *", " ", block).splitlines()
        while lines:
            line = re.sub(r"(^|\s+)#\s.*$", "", lines.pop(0)).strip()
            if end := re.search(r"<<'(\w+)'", line):
                stop = lines.index(end[1]) + 1
                line, lines = "\n".join([line, *lines[:stop]]), lines[stop:]
            found += [line] if line else []
    return found


def name_of(command: str) -> str:
    return re.sub(r" <<.*", "", command, flags=re.S)


def inline(page: str) -> list[str]:
    """Inline commands with options on a page, with `N` replaced by 1."""
    found = re.findall(r"`(workbench [^`…]* --[^`…]*)`", (ROOT / page).read_text(encoding="utf-8"))
    return [re.sub(r"\bN\b", "1", command) for command in found]


def parse(command: str) -> None:
    """Parse a `workbench` command without running it; raises usage errors."""
    current: Any = typer.main.get_command(app)
    context = current.make_context("workbench", shlex.split(command)[1:])
    while hasattr(current, "commands"):
        if not (rest := [*context._protected_args, *context.args]):
            return  # a group that runs without a subcommand
        name, current, rest = current.resolve_command(context, rest)
        context = current.make_context(name, rest, parent=context)


def test_commands_of_the_pages_are_listed() -> None:
    there = {page: {name_of(command) for command in commands(page)} for page in PAGES}
    unknown = {page: names - KNOWN.get(page, {}).keys() for page, names in there.items()}
    gone = {page: known.keys() - there.get(page, set()) for page, known in KNOWN.items()}
    assert (unknown, gone) == ({page: set() for page in unknown}, {page: set() for page in gone}), (
        "name them in examples/commands.tsv, or drop them"
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for command in [*commands(page), *inline(page)]:
        program, *rest = shlex.split(name_of(command))
        assert program in ("workbench", "make", "source", "cat", "conda"), command
        if program == "workbench":
            parse(command)
        if program == "make":
            assert set(rest) <= targets, command


@pytest.mark.parametrize(
    "command",
    ["workbench train truthrl --ouk runs/x", "workbench agre a b", "workbench score --in a"],
)
def test_parse_refuses_unknown_commands_and_options(command: str) -> None:
    with pytest.raises(typer.exceptions.TyperException):
        parse(command)


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The true claim's tokens get higher rewards than the false claim's; one total is printed."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)
    assert len([line for line in code.splitlines() if line]) <= 6
    exec(code, {})
    tokens, [value] = map(ast.literal_eval, capsys.readouterr().out.splitlines())
    assert len(tokens) == 9 and max(tokens[:4]) > 0 > min(tokens[4:]) and value == max(tokens)


def examples(command: Any) -> list[str]:
    inner = [line for one in getattr(command, "commands", {}).values() for line in examples(one)]
    return [*inner, *([command.epilog.removeprefix("Example: ")] if command.epilog else [])]


@pytest.mark.slow
def test_examples_in_the_help_are_valid_commands() -> None:
    found = examples(typer.main.get_command(app))
    assert len(found) > 20
    for example in found:
        parse(example)


def prepare(folder: Path) -> None:
    """Write the user files that docs/commands.md names."""
    ends = {"in Paris": "support", "in Rome": "contradict", "tall": "neutral"}
    pair = {"premise": "The Eiffel Tower stands in Paris.", "source": "s"}
    write(
        folder / "pairs.jsonl",
        [pair | {"claim": f"The tower is {end}.", "label": label} for end, label in ends.items()],
    )
    for name, accuracy in (("before", 0.8), ("after", 0.7)):
        results = {"arc": {"acc,none": accuracy, "acc_stderr,none": 0.01}}
        write_json(folder / f"{name}.json", {"results": results})
    (folder / "runs" / "completions").mkdir(parents=True)
    logged = [
        {"step": step, "prompt": "Who?", "completion": "Ada.", "accuracy": 1.0, "advantage": 0.0}
        for step in (1, 2)
    ]
    write(folder / "runs" / "completions" / "completions.jsonl", logged)


Run = Callable[[str, str], None]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command in the folder, in a shell or in this process, with only the packages that
    `make demo` installs.
    """
    monkeypatch.chdir(tmp_path)
    for package in EXTRAS:
        monkeypatch.setitem(sys.modules, package, None)

    def call(command: str, more: str) -> None:
        if not command.startswith("workbench "):
            subprocess.run(["bash", "-c", command], check=True)
            return
        with pytest.raises(SystemExit) as exit:
            main(shlex.split(f"{command} {more}")[1:])
        out, err = capsys.readouterr()
        assert exit.value.code == 0, f"{command}: exit code {exit.value.code}\n{out}\n{err}"
        assert out.strip(), command

    return call


@pytest.mark.slow
def test_the_commands_page_can_be_followed_in_order(tmp_path: Path, run: Run) -> None:
    prepare(tmp_path)
    with JudgeServer(reply=reply) as server:
        for command in commands("docs/commands.md"):
            more, not_run = KNOWN["docs/commands.md"][name_of(command)]
            if not not_run:
                run(command.replace(JUDGE, server.url), more)
        (snippet,) = re.findall(
            r"^```python\n(.*?)^```$", (ROOT / "docs/commands.md").read_text(), re.S | re.M
        )
        exec(snippet, {})
        for command in BETWEEN["docs/commands.md"]:
            assert command in inline("docs/commands.md")
            run(command, "")
        asked = server.requests
    assert asked and (tmp_path / "runs" / "again" / "rollouts.jsonl").exists()
    assert read_json(tmp_path / "runs" / "ternary" / "summary.json")["status"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in ("README.md", "docs/commands.md") and commands(page)],
)
def test_a_page_can_be_followed_in_order(page: str, run: Run) -> None:
    for command in commands(page):
        more, not_run = KNOWN[page][name_of(command)]
        if not not_run:
            run(command, more)


LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """GitHub's anchors for the headings of a page."""
    heads = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower().strip() for head in heads)
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


@pytest.mark.parametrize(
    "page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "data/README.md"]
)
def test_targets_of_links_exist(page: str) -> None:
    broken = []
    for target in (a or b for a, b in LINK.findall((ROOT / page).read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_page_on_the_papers_names_files_settings_and_findings_that_exist() -> None:
    page = (ROOT / "docs" / "papers.md").read_text()
    coded = re.findall(r"`([^`]+)`", page)
    paths = [one for one in coded if re.fullmatch(r"[\w./*]+(?:/|\.py|\.md|\.toml)", one)]
    assert len(paths) > 80
    for path in paths:
        found = [*ROOT.glob(path.rstrip("/")), *(ROOT / "workbench").glob(path.rstrip("/"))]
        inside = [*(ROOT / "workbench" / "judge" / "prompts").glob(path)]
        assert found or inside, path
    settings = [one for one in coded if re.fullmatch(r"[a-z_]+\.[a-z_.]+(?:=\S+)?", one)]
    settings = [one for one in settings if one.partition(".")[0] in TRAINED]
    assert len(settings) > 12
    for one in settings:
        name, _, rest = one.partition(".")
        assert find(TRAINED[name].configure(), rest.partition("=")[0]), one
    toml = "".join(path.read_text() for path in (ROOT / "benchmarks" / "findings").glob("*.toml"))
    for line in page.splitlines():
        for names in re.findall(r"[Ff]indings? ((?:[A-Z]\d+(?:, )?)+)", line):
            for name in names.strip(", ").split(", "):
                assert f'id = "{name}"' in toml, line
