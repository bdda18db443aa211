"""Damaged, linked or truncated runs: opening one is an error, and every other run is shown."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import examples
from tests.helpers.score_helpers import read, write
from tests.test_inspector import SIZE, STEPS, record
from workbench.inspector.curves import curve_data, run_list
from workbench.inspector.evaluations import before_after
from workbench.inspector.inspect_tab import open_number, shown_or_error, step_row
from workbench.inspector.listing import ORDERS, Query, rollouts
from workbench.inspector.live import policies
from workbench.inspector.opened import NOTHING, open_row, show
from workbench.inspector.page import Settings, first_shown
from workbench.inspector.runs import Runs
from workbench.types import JsonObject, WorkbenchError

ROW = "tarven/1/0"


def lines(change: Callable[[bytes], bytes], file: str = "rollouts.jsonl") -> Callable[[Path], None]:
    """Change the first line of a run's file."""

    def apply(run: Path) -> None:
        first, rest = (run / file).read_bytes().split(b"\n", 1)
        (run / file).write_bytes(change(first) + b"\n" + rest)

    return apply


def field(name: str, value: object) -> Callable[[Path], None]:
    """Replace a field of the first row."""
    return lines(lambda line: json.dumps({**json.loads(line), name: value}).encode())


def written(file: str, text: str | bytes) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        (run / file).write_bytes(text.encode() if isinstance(text, str) else text)

    return apply


def every(change: Callable[[JsonObject], JsonObject]) -> Callable[[Path], None]:
    """Change all rows of a run's record."""

    def apply(run: Path) -> None:
        write(run / "rollouts.jsonl", map(change, read(run / "rollouts.jsonl")))

    return apply


def linked(run: Path) -> None:
    (run / "rollouts.jsonl").rename(run.parent.parent / "elsewhere.jsonl")
    (run / "rollouts.jsonl").symlink_to(run.parent.parent / "elsewhere.jsonl")


def in_its_place(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        (run / "rollouts.jsonl").unlink()
        make(run / "rollouts.jsonl")

    return apply


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a linked record": linked,
    "a record that is a folder": in_its_place(Path.mkdir),
    "a response that is not UTF-8": lines(lambda line: line.replace(b"Tarven", b"\xff\xfe", 3)),
    "an id that is half a surrogate pair": field("id", "\ud800"),
    "half a row": lines(lambda line: line[: len(line) // 2]),
    "a row of another depth": lines(lambda line: b"[" * 100_000),
    "NaN in a row": lines(lambda line: line.replace(b'"logprobs": [-0.0', b'"logprobs": [NaN', 1)),
    "a step that is a list": field("step", [1]),
    "a group that is a list": field("group", [1]),
    "claims that are a text": field("claims", "none"),
    "tokens that are a number": field("tokens", 3),
    "a list for a config": written("config.json", "[]"),
    "a text for a number in a config": written(
        "config.json", '{"method": "rlfh", "config": {"alpha": "x"}}'
    ),
    "half a config": written("config.json", "{"),
    "a summary of texts": written(
        "summary.json", '{"before": {"greedy": {"accuracy": {"value": "x"}}}, "after": 3}'
    ),
    "metrics without steps": written("metrics.jsonl", '{"reward": 1}\n'),
    "NaN in the metrics": written("metrics.jsonl", '{"step": 1, "reward": NaN, "kl": "x"}\n'),
    "a reward in the metrics beyond all floats": written(
        "metrics.jsonl", '{"step": 1, "reward": 1%s}\n' % ("0" * 400)
    ),
    "a reward of a row beyond all floats": field(
        "rewards", {"truthrl": {"value": 10**400, "parts": {"outcome": 10**400}}}
    ),
    "rewards of rows whose sum is beyond all floats": every(
        lambda row: {**row, "rewards": {"truthrl": {"value": 1e308}}}
    ),
    "no questions": lambda run: (run / "questions.jsonl").unlink(),
    "half a question": lines(lambda line: line[: len(line) // 2], "questions.jsonl"),
    "half a passage": lines(lambda line: line[: len(line) // 2], "passages.jsonl"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * bool(number % 6))
        for number, name in enumerate(DAMAGE)
    ],
)
def test_a_damaged_run_is_an_error_and_others_are_shown(tmp_path: Path, name: str) -> None:
    root = tmp_path / "runs"
    good, bad = record(root / "good"), record(root / "bad")
    (good / "policy").mkdir()
    (bad / "policy").mkdir()
    DAMAGE[name](bad)
    runs = Runs(root)
    assert "good" in runs.names() and "good" in policies(runs)
    for start in ({}, {"run": "bad", "id": ROW}, {"run": "bad", "id": "damaged row 1"}):
        for settings in (Settings(root, "bad"), Settings(root, "good")):
            opened, error = first_shown(runs, settings, start)
            assert json.loads(show(opened))["text"] and (error is None or "\n" not in str(error))
    for place in range(1, STEPS * SIZE + 1):
        view, note = shown_or_error(open_number, runs, "bad", place)
        assert (view == NOTHING) == ("error" in json.loads(note))
        assert len(step_row(runs, 1, "bad", place)) == 3
    for step in range(STEPS + 1):
        pages = [json.loads(rollouts(runs, "bad", Query(step, order))) for order in ORDERS]
        pages += [
            json.loads(curve_data(runs, ["bad", "good"])),
            *run_list(runs),
            json.loads(before_after(runs, ["bad"])),
        ]
        assert all(isinstance(one, dict) for one in pages)
    good = json.loads(rollouts(runs, "good", Query(1, ORDERS[0])))
    assert [len(good["rows"]), good["choices"]["steps"]] == [SIZE, [1, STEPS]]


@pytest.mark.parametrize(("name", "message"), examples("damaged_files"))
def test_the_error_names_the_damaged_file(tmp_path: Path, name: str, message: str) -> None:
    DAMAGE[name](record(tmp_path / "runs" / "bad"))
    with pytest.raises(WorkbenchError) as error:
        show(open_row(Runs(tmp_path / "runs"), "bad", ROW))
    assert message in str(error.value)


def test_damaged_rows_are_counted_and_others_are_listed(tmp_path: Path) -> None:
    DAMAGE["claims that are a text"](record(tmp_path / "bad"))
    runs = Runs(tmp_path)
    page = json.loads(rollouts(runs, "bad", Query(1, ORDERS[0])))
    assert len(page["rows"]) == SIZE - 1
    assert "1 row is left out: row 1 of run 'bad' is damaged" in page["note"]
    # advantages over the rest of the group would be wrong, so there are none
    data = json.loads(show(open_row(runs, "bad", "tarven/1/1")))
    assert not any(method["advantages"] for method in data["methods"].values())
    assert any(
        method["advantages"]
        for method in json.loads(show(open_row(runs, "bad", "tarven/2/1")))["methods"].values()
    )


@pytest.mark.parametrize(
    "name", ["r" * 5000, "r/" * 2500, "r" * 900, "\ud800", "a\nb", "%00", "bad\0"]
)
def test_an_invalid_run_name_is_a_short_error(tmp_path: Path, name: str) -> None:
    record(tmp_path / "good")
    opened, error = first_shown(Runs(tmp_path), Settings(tmp_path), {"run": name, "id": "x"})
    assert opened.feedback and error and len(str(error)) < 400


def test_unreadable_folders_do_not_hide_runs(tmp_path: Path) -> None:
    record(tmp_path / "good")
    os.mkdir(os.fsencode(tmp_path) + b"/\xff\xfe")
    (tmp_path / "file").write_text("")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    record(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")))
    assert Runs(tmp_path).names() == ["good"]
