"""The table of a run's rows: any writer, file size and stored index."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from tests.test_inspector import record, rollout
from workbench.inspector.curves import curve_data, run_list, stamp
from workbench.inspector.listing import Query, rollouts
from workbench.inspector.opened import open_row
from workbench.inspector.runs import Runs
from workbench.inspector.same_prompt import compared
from workbench.runs import rows as stored
from workbench.runs.growing import Growing
from workbench.runs.rows import Rows, column, index_path, read_rows, tail_rows, text_of
from workbench.runs.steps import by_step
from workbench.runs.store import ROLLOUTS, append_feedback
from workbench.types import Failure, Feedback, JsonObject, Reward, Verdict
from workbench.util.jsonl import truncate_after_step

NASTY = (
    '"rewards": {"x": {"value": 9.0, "parts": {}, ',
    '\\"target\\": "outcome"',
    "é\u2028\ud800",
    '{"schema": 1, "id": "a"',
)


def other(number: int) -> Feedback:
    """Return a row whose texts look like JSON keys, with several methods and a failure."""
    row, text = rollout(1, number % 4), NASTY[number % len(NASTY)]
    rewards = {
        text: Reward(None, {text: 1e-07}),
        "trl:acc": Reward(-2.5e10),
        "m": Reward(0.5, {"a": 1, "b {}": -0.25}),
    }
    finish = "length" if number % 2 else "stop"
    name, step = f"{text}/{number}", number // 4
    response = replace(row.response, id=name, text=text, finish=finish, step=step)
    error = Failure("judge", "timeout", text) if number == 3 else None
    label = ("correct", "incorrect", "uncertain", "correct")[number % 4]
    verdicts = (
        *(verdict for verdict in row.verdicts if verdict.target != "outcome"),
        Verdict("outcome", "answer", label),
    )
    rewards = {**row.rewards, **rewards}
    return replace(row, response=response, rewards=rewards, error=error, verdicts=verdicts)


def forget() -> None:
    """Clear the caches, as in a new process."""
    stored._rows._cache.clear()
    for thread, _ in list(stored._readers.values()):
        thread.join()
    stored._readers.clear()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets of rows parsed from now on."""
    offsets: list[int] = []
    parse = stored._columns

    def counted(number: int, offset: int, line: bytes) -> JsonObject:
        offsets.append(offset)
        return parse(number, offset, line)

    monkeypatch.setattr(stored, "_columns", counted)
    return offsets


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a stored index, opened once."""
    monkeypatch.setattr(stored, "STORED_FROM", 1)
    path = record(tmp_path / "run") / ROLLOUTS
    forget()
    read_rows(path)
    forget()
    return path


def test_rows_of_any_key_order_and_any_text_are_equal(tmp_path: Path) -> None:
    append_feedback(tmp_path, [other(number) for number in range(8)])
    lines = (tmp_path / ROLLOUTS).read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        turned = json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n"
        assert stored._columns(number, 0, line) == stored._columns(number, 0, turned)
        assert text_of(line) == text_of(turned) == NASTY[number % len(NASTY)]
    rows = read_rows(tmp_path / ROLLOUTS)
    first = rows.table.iloc[0]
    keys = [("m", ""), ("m", "b {}"), ("trl:acc", "")]
    assert [first[column(*key)] for key in keys] == [0.5, -0.25, -2.5e10]
    assert pd.isna(first[column(NASTY[0])]) and pd.isna(rows.reward("x")).all()
    length = len(rollout(1, 0).response.offsets)
    assert [first[name] for name in ("length", "outcome", "cut")] == [length, "correct", False]
    assert rows.table["outcome"].tolist()[2:4] == ["uncertain", ""]  # a failed row has none


def test_a_stored_index_is_used_for_a_file_that_has_grown(large: Path, parsed: list[int]) -> None:
    rows = read_rows(large)
    assert parsed == [] and len(rows) == 12
    size = large.stat().st_size
    append_feedback(large.parent, [rollout(4, 0)])
    forget()
    assert read_rows(large).table["id"].iloc[-1] == "tarven/4/0" and parsed == [size]
    assert read_rows(large).table[:12].equals(rows.table)


def rewritten(change: Callable[[pd.DataFrame], Any]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        change(table := pd.read_parquet(index_path(path)))
        table.to_parquet(index_path(path))

    return apply


def edited(path: Path) -> None:
    """Change the first row, but not the size or the last line."""
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first.replace(b'"value": 1', b'"value": 3') + b"\n" + rest)
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    path.unlink()
    append_feedback(path.parent, [rollout(number, 0) for number in range(5, 30)])


def linked(path: Path) -> None:
    index_path(path).rename(path.with_name("elsewhere"))
    index_path(path).symlink_to(path.with_name("elsewhere"))


STALE: dict[str, Callable[[Path], Any]] = {
    "edited": edited,
    "replaced": replaced,
    "linked": linked,
    "half": lambda path: index_path(path).write_bytes(index_path(path).read_bytes()[:-9]),
    "not Parquet": lambda path: index_path(path).write_text("[1]"),
    "a bad offset": rewritten(lambda table: table.insert(0, "offset", -table.pop("offset"))),
    "no offsets": rewritten(lambda table: table.pop("offset")),
    "another format": rewritten(lambda table: table.attrs["record"].update(format=1)),
    "no attributes": rewritten(lambda table: table.attrs.clear()),
}


@pytest.mark.parametrize("name", STALE)
def test_a_stale_damaged_or_linked_index_is_rebuilt(
    large: Path, parsed: list[int], name: str
) -> None:
    STALE[name](large)
    rows = read_rows(large)
    assert len(parsed) == len(rows) and rows.table["offset"].iloc[0] == 0
    assert not index_path(large).is_symlink()
    assert pd.read_parquet(index_path(large)).attrs["record"]["format"] == stored.FORMAT


def test_a_read_only_folder_can_be_read(large: Path) -> None:
    index_path(large).unlink()
    index_path(large).mkdir()  # nothing can replace it
    before = sorted(large.parent.iterdir())
    assert len(read_rows(large)) == 12 and sorted(large.parent.iterdir()) == before


def test_rows_are_read_without_write_permission(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    index_path(large).unlink()
    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert len(read_rows(large)) == 12


def test_the_last_rows_are_numbered_as_in_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_feedback(tmp_path, [other(number) for number in range(8)])
    path = tmp_path / ROLLOUTS
    half = b'{"schema": 1, "id": "half'
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n  \n", 2) + half)
    whole = read_rows(path)
    offsets = whole.table["offset"]

    def tail(size: int) -> Rows:
        stored._tail.cache_clear()
        monkeypatch.setattr(stored, "TAIL", size)
        return tail_rows(path)

    some = tail(offsets[7] - offsets[4])
    assert 0 < some.missing < 8 == some.total
    assert some.table.equals(whole.table[some.missing :][list(some.table)])
    assert tail(10**9).table.equals(whole.table) and len(tail(10)) == 0
    path.write_bytes(path.read_bytes()[: offsets[3]])  # truncated in the meantime
    assert tail(10**9).total == 3


def test_only_new_rows_of_a_growing_file_are_read(tmp_path: Path, parsed: list[int]) -> None:
    record(tmp_path / "run", [])
    runs, path = Runs(tmp_path), tmp_path / "run" / ROLLOUTS
    for count in range(1, 11):
        append_feedback(tmp_path / "run", [rollout(count, 0)])
        assert runs.rows("run").steps == list(range(1, count + 1))
        assert open_row(runs, "run", f"tarven/{count}/0").feedback.response.step == count
    assert len(parsed) == 10  # each row once
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "id": "half')
        file.flush()
        assert len(runs.rows("run")) == 10  # without the unfinished line
        file.write(b'"}\n')
    assert runs.number("run", "half") == 10 and len(parsed) == 11


def test_a_line_finished_during_a_read_is_left_for_the_next_read(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"one\ntw")

    def add(rows: list[bytes], offset: int, lines: list[bytes]) -> list[bytes]:
        if not rows:  # the writer continues
            path.write_bytes(b"one\ntwo\n")
        return [*rows, *lines]

    growing = Growing(list[bytes], add)
    assert growing.read(path) == [b"one\n"]
    assert growing.read(path) == [b"one\n", b"two\n"]


def test_a_file_that_was_truncated_is_read_again(tmp_path: Path) -> None:
    run, runs = record(tmp_path / "run"), Runs(tmp_path)
    assert len(runs.rows("run")) == 12
    truncate_after_step(run / ROLLOUTS, 1)
    assert runs.rows("run").table["step"].tolist() == [1] * 4
    append_feedback(run, [rollout(2, 3)])
    assert runs.rows("run").steps == [1, 2]
    assert open_row(runs, "run", "tarven/2/3").feedback.response.sample == 3
    (run / ROLLOUTS).write_text("")
    assert len(runs.rows("run")) == 0 and runs.rows("run").numbers == {}


def test_a_file_that_was_edited_in_place_is_read_again(tmp_path: Path, parsed: list[int]) -> None:
    path = record(tmp_path / "run") / ROLLOUTS
    before = read_rows(path).table
    edited(path)
    assert not read_rows(path).table.equals(before) and len(parsed) == 2 * len(before)


@pytest.fixture
def blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """A large run of 12 rows; reading it takes until the test releases the file's lock."""
    path = record(tmp_path / "run") / ROLLOUTS
    forget()
    monkeypatch.setattr(stored, "STORED_FROM", 1)
    monkeypatch.setattr(stored, "PATIENCE", 0.05)
    monkeypatch.setattr(stored, "TAIL", path.stat().st_size // 2)
    yield Runs(tmp_path)
    forget()


def test_a_large_file_shows_its_last_rows_until_all_are_read(blocked: Runs) -> None:
    path = blocked.root / "run" / ROLLOUTS
    with stored._rows._file_lock(path):
        listed = json.loads(rollouts(blocked, "run", Query(3)))
        assert len(listed["rows"]) == 4 and 4 <= listed["missing"] < 8
        assert "still being read" in listed["note"]
        assert json.loads(curve_data(blocked, ["run"]))["reading"].endswith("so far: run.")
        opened = open_row(blocked, "run", "tarven/3/1")
        assert opened.group == () and "being read" in opened.note
        assert blocked.row("run", 11)["id"] == "tarven/3/3"
        record(blocked.root / "small")  # another run is not blocked
        assert len(blocked.all_rows("small")) == 12
    forget()
    whole = json.loads(rollouts(blocked, "run", Query(3)))
    assert whole["rows"] == listed["rows"] and whole["missing"] == 0
    assert "still" not in whole["note"]
    assert len(open_row(blocked, "run", "tarven/3/1").group) == 4
    assert json.loads(curve_data(blocked, ["run"]))["reading"] == ""


def test_a_request_for_an_unread_row_waits_for_it(blocked: Runs) -> None:
    found: JsonObject = {}
    jobs: dict[str, Callable[[], Any]] = {
        "row": lambda: blocked.row("run", 0)["id"],
        "number": lambda: blocked.number("run", "tarven/1/1"),
        "beside": lambda: compared(blocked, "run", "tarven/3/3", {}),
    }
    with stored._rows._file_lock(blocked.root / "run" / ROLLOUTS):
        assert blocked.rows("run").missing
        threads = [
            Thread(target=lambda name=name: found.update({name: jobs[name]()})) for name in jobs
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join(0.1)
        assert found == {}
    for one in threads:
        one.join(20)
    assert (found["row"], found["number"]) == ("tarven/1/0", 1)
    assert (found["beside"]["steps"], found["beside"]["step"]) == ([1, 2, 3], 2)
    assert len(found["beside"]["first"]["group"]) == 4


def test_a_stored_index_is_loaded_in_the_background(large: Path) -> None:
    runs = Runs(large.parents[1])
    (large.parent / "metrics.jsonl").unlink()
    with stored._rows._file_lock(large):
        before = stamp(runs, [])
        [output] = run_list(runs)
        assert output["last"] is None and "broken" not in output
    for thread, _ in list(stored._readers.values()):
        thread.join()
    assert stamp(runs, []) != before and run_list(runs)[0]["last"] is not None


def test_means_of_the_rows_replace_missing_metrics(tmp_path: Path) -> None:
    """By hand: the labels wrong, vague, hedged, correct give r, r + 1, r + 2.5, r + 3."""
    append_feedback(tmp_path, [rollout(step, sample) for step in (1, 2) for sample in range(4)])
    metrics = [{"step": 2, "reward": 9.0, "kl": 0.5, "reward/truth": 4.0, "accuracy": None}]
    first, second = by_step(metrics, read_rows(tmp_path / ROLLOUTS), "rlfh")
    assert first["reward"] == pytest.approx(1.65509 + 6.5 / 4, abs=1e-5)
    # Deviations -1.625, -0.625, 0.875, 1.375: the squares sum to 5.6875, over 3.
    assert first["reward_std"] == pytest.approx((5.6875 / 3) ** 0.5)
    assert second["reward_std"] == first["reward_std"]
    found = [second[name] for name in ("reward", "kl", "part:truth", "accuracy")]
    assert found == [9.0, 0.5, 4.0, 1.0] and first["truncated"] is None
