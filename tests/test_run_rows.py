"""The rows of a record, read once: whoever wrote them, however large the file, and whatever lies
beside it.
"""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.test_inspector import record, rollout
from workbench.inspector.curves import curve_data, run_list, stamp
from workbench.inspector.export import exported
from workbench.inspector.listing import Query
from workbench.inspector.opened import open_row
from workbench.inspector.rollouts import rollouts
from workbench.inspector.runs import Runs
from workbench.plots import run_curves
from workbench.runs import opening, rows
from workbench.runs.rows import index_path, read_index, tail_index, text_of
from workbench.runs.steps import run_steps, step_means
from workbench.store import ROLLOUTS, append_feedback
from workbench.types import Failure, Feedback, Reward, Verdict

NASTY = (
    '"rewards": {"x": {"value": 9.0, "parts": {}, ',
    '\\"target\\": "outcome"',
    "é\u2028\ud800",
    '{"schema": 1, "id": "a"',
)


def forget() -> None:
    rows._rows._known.clear()
    opening._readers.clear()


def others(number: int) -> Feedback:
    """A row whose texts look like the record's own marks, with several methods, a failure and
    rewards beyond a number.
    """
    row, text = rollout(1, number % 4), NASTY[number % len(NASTY)]
    rewards = {
        text: Reward(None, {text: 1e-07}),
        "trl:acc": Reward(-2.5e10),
        "m": Reward(0.5, {"a": 1, "b {}": -0.25}),
    }
    response = replace(
        row.response,
        id=f"{text}/{number}",
        text=text,
        finish="length" if number % 2 else "stop",
        step=number // 4,
    )
    error = Failure("judge", "timeout", text) if number == 3 else None
    outcome = Verdict(
        "outcome", "answer", ("correct", "incorrect", "uncertain", "correct")[number % 4]
    )
    verdicts = (*(verdict for verdict in row.verdicts if verdict.target != "outcome"), outcome)
    return replace(
        row, response=response, rewards={**row.rewards, **rewards}, error=error, verdicts=verdicts
    )


def test_rows_of_any_key_order_and_of_any_text_are_the_same_entries(tmp_path: Path) -> None:
    append_feedback(tmp_path, [others(number) for number in range(8)])
    lines = (tmp_path / ROLLOUTS).read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        turned = json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n"
        ours, theirs = (
            rows._written_by_us(number, 0, line),
            rows._written_by_others(number, 0, turned),
        )
        assert ours is not None and ours == theirs
        assert text_of(line) == text_of(turned) == NASTY[number % len(NASTY)]
    entry = read_index(tmp_path / ROLLOUTS).entries[0]
    assert (
        entry.value("m"),
        entry.value("m", "b {}"),
        entry.value("trl:acc"),
        entry.value("x"),
    ) == (0.5, -0.25, -2.5e10, None)
    first = rollout(1, 0).response
    assert (entry.length, entry.outcome, entry.cut) == (len(first.offsets), "correct", False)
    # of a failed row, none
    assert [one.outcome for one in read_index(tmp_path / ROLLOUTS).entries][2:4] == [
        "uncertain",
        None,
    ]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record whose index is worth keeping, already opened once."""
    monkeypatch.setattr(rows, "WORTH", 1)
    path = tmp_path / "run" / ROLLOUTS
    append_feedback(path.parent, [others(number) for number in range(8)])
    forget()
    read_index(path)
    return path


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the rows that are read from the record from now on, by a process that knows
    nothing yet.
    """
    forget()
    numbers, entry = [], rows._entry

    def look(number: int, offset: int, line: bytes) -> rows.Entry:
        numbers.append(number)
        return entry(number, offset, line)

    monkeypatch.setattr(rows, "_entry", look)
    return numbers


def test_an_index_beside_the_record_stands_for_it_and_for_its_beginning(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, looked = read_index(large).entries, counted(monkeypatch)
    assert read_index(large).entries == before and looked == []
    append_feedback(
        large.parent, [replace(others(8), response=replace(others(8).response, id="new"))]
    )
    forget()
    assert [entry.id for entry in read_index(large).entries][-1] == "new" and looked == [8]


def edited(path: Path) -> None:
    """The same size and the same last line, and another first row."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0].replace(b'"value": 0.5', b'"value": 0.7'), *lines[1:]]))
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    path.unlink()
    append_feedback(path.parent, [others(number) for number in (5, 6, 7)])


def poisoned(path: Path) -> None:
    stored = json.loads(index_path(path).read_text())
    index_path(path).write_text(json.dumps({**stored, "offset": [-1, *stored["offset"][1:]]}))


def linked(path: Path) -> None:
    index_path(path).rename(path.with_name("elsewhere.json"))
    index_path(path).symlink_to(path.with_name("elsewhere.json"))


def _rewrite(path: Path, old: str, new: str) -> None:
    index_path(path).write_text(index_path(path).read_text().replace(old, new))


DAMAGE = {
    "edited": edited,
    "replaced": replaced,
    "poisoned": poisoned,
    "linked": linked,
    "half": lambda path: index_path(path).write_bytes(index_path(path).read_bytes()[:-9]),
    "a list": lambda path: index_path(path).write_text("[1]"),
    "a pickle": lambda path: index_path(path).write_bytes(b"\x80\x04cos\nsystem\n."),
    "another format": lambda path: _rewrite(path, '"format":1,', '"format":0,'),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_index_that_is_stale_damaged_or_somebody_else_s_is_made_anew(
    large: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    DAMAGE[name](large)
    looked = counted(monkeypatch)
    found = read_index(large).entries
    assert looked == list(range(len(found))) and found[0].offset == 0
    assert (
        not index_path(large).is_symlink()
        and json.loads(index_path(large).read_text())["format"] == rows.FORMAT
    )


def test_a_folder_that_may_not_be_written_is_read_all_the_same(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_path(large).unlink()
    index_path(large).mkdir()  # nothing can be put in its place
    forget()
    assert len(read_index(large).entries) == 8 and sorted(
        path.name for path in large.parent.iterdir()
    ) == [
        "passages.jsonl",
        "questions.jsonl",
        "rollouts.index.json",
        "rollouts.jsonl",
    ]


def test_the_last_rows_are_numbered_as_in_the_whole_record(tmp_path: Path) -> None:
    append_feedback(tmp_path, [others(number) for number in range(8)])
    path = tmp_path / ROLLOUTS
    path.write_bytes(
        path.read_bytes().replace(b"\n", b"\n\n  \n", 2) + b'{"schema": 1, "id": "half'
    )
    whole = read_index(path)
    tail = tail_index(path, whole.entries[-1].offset - whole.entries[4].offset)
    assert 0 < tail.missing < 8 == tail.rows and tail.entries == whole.entries[tail.missing :]
    assert tail_index(path, 10**9).entries == whole.entries and tail_index(path, 10).entries == []
    # a record that was cut meanwhile
    path.write_bytes(path.read_bytes()[: whole.entries[3].offset])
    assert tail_index(path, 10**9).rows == 3


def test_a_large_record_shows_its_last_rows_until_all_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "run", [rollout(step, sample) for step in (1, 2, 3) for sample in range(4)])
    path, runs = tmp_path / "run" / ROLLOUTS, Runs(tmp_path)
    forget()
    for module, name, value in (
        (rows, "WORTH", 1),
        (opening, "PATIENCE", 0.05),
        (opening, "TAIL", path.stat().st_size // 2),
    ):
        monkeypatch.setattr(module, name, value)
    with rows._rows._turn(path):  # nobody gets any further
        listed = json.loads(rollouts(runs, "run", Query(3)))
        assert (
            len(listed["rows"]) == 4
            and 4 <= listed["missing"] < 8
            and "still being read" in listed["note"]
        )
        assert json.loads(curve_data(runs, ["run"]))["reading"].endswith("known: run.")
        opened = open_row(runs, "run", "tarven/3/1")
        assert (
            opened.group == ()
            and "being read" in opened.note
            and runs.row("run", 12).id == "tarven/3/3"
        )
    assert len(read_index(path).entries) == 12
    for thread, _ in list(opening._readers.values()):
        thread.join()
    read, feedback = list[str](), Runs.feedback

    def counted(self: Runs, name: str, entry: Any) -> Any:
        read.append(entry.id)
        return feedback(self, name, entry)

    monkeypatch.setattr(Runs, "feedback", counted)
    whole = json.loads(rollouts(runs, "run", Query(3)))
    assert read == []  # nor paid again
    assert (
        whole["rows"] == listed["rows"] and whole["missing"] == 0 and "still" not in whole["note"]
    )
    assert (
        len(open_row(runs, "run", "tarven/3/1").group) == 4
        and json.loads(curve_data(runs, ["run"]))["reading"] == ""
    )


def test_what_needs_a_row_that_is_not_read_yet_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "run")
    path, runs = tmp_path / "run" / ROLLOUTS, Runs(tmp_path)
    forget()
    for module, name, value in (
        (rows, "WORTH", 1),
        (opening, "PATIENCE", 0.05),
        (opening, "TAIL", 9000),
    ):
        monkeypatch.setattr(module, name, value)
    with rows._rows._turn(path):
        assert runs.index("run").missing
        waiting = [
            Thread(target=lambda: found.append(runs.row("run", 1).id)),
            Thread(target=lambda: found.append(runs.entry("run", "tarven/1/1").id)),
            Thread(target=lambda: found.append(exported(runs, "run", Query(), "csv")["base64"])),
        ]
        found: list[str] = []
        for one in waiting:
            one.start()
        for one in waiting:
            one.join(0.1)
        assert found == []
    for one in waiting:
        one.join(10)
    assert {"tarven/1/0", "tarven/1/1"} < set(found) and base64.b64decode(
        max(found, key=len)
    ).count(b"tarven/1/0") >= 1


def test_what_lies_beside_a_large_record_is_read_for_the_next_look(large: Path) -> None:
    for thread, _ in list(opening._readers.values()):  # one file is read ahead at a time
        thread.join()
    forget()
    runs = Runs(large.parents[1])
    with rows._rows._turn(large):
        before = stamp(runs, [])
        told = run_list(runs)[0]
        assert told["last"] is None and "broken" not in told
    for thread, _ in list(opening._readers.values()):
        thread.join()
    assert stamp(runs, []) != before and run_list(runs)[0]["last"] is not None


def test_a_large_record_that_is_read_holds_up_no_other(tmp_path: Path) -> None:
    record(tmp_path / "large")
    record(tmp_path / "small")
    forget()
    with rows._rows._turn(tmp_path / "large" / ROLLOUTS):
        assert len(Runs(tmp_path).index("small").entries) == 12


def test_the_last_rows_of_one_record_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "WORTH", 1)
    paths = {name: record(tmp_path / name) / ROLLOUTS for name in ("slow", "other", "ahead")}
    read_index(paths["ahead"])  # which leaves an index beside it
    forget()
    begun, go_on, looked = Event(), Event(), list[Path]()

    def slowly(path: Path, most: int) -> rows.Index:
        looked.append(path)
        if path == paths["slow"]:
            begun.set()
            go_on.wait(10)
        return tail_index(path, most)

    monkeypatch.setattr(opening, "tail_index", slowly)
    waiting = [
        Thread(target=opening.opened_index, args=(paths[name],)) for name in ("slow", "other")
    ]
    waiting[0].start()
    assert begun.wait(10)
    waiting[1].start()
    waiting[1].join(5)
    free = not waiting[1].is_alive()
    ahead = Thread(target=opening.at_hand, args=(paths["ahead"],))
    ahead.start()
    ahead.join(5)
    free = free and not ahead.is_alive()
    go_on.set()
    for one in (*waiting, ahead):
        one.join(10)
    assert free and paths["ahead"] not in looked  # nobody waits for its last rows


class Slow(list[rows.Entry]):
    """Rows of which another thread can take a part while one does."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        time.sleep(0.2 if isinstance(key, slice) else 0)
        return found


def test_rows_that_two_threads_ask_for_at_once_count_once(tmp_path: Path) -> None:
    record(tmp_path, [rollout(1, sample) for sample in range(4)])
    index = read_index(tmp_path / ROLLOUTS)
    new = index.entries[0]._replace(id="new", cut=True)
    index.entries = Slow(index.entries)
    both = [Thread(target=index.answers, args=(new.question,)) for _ in range(2)]
    both += [Thread(target=step_means, args=(index, "rlfh")) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [entry.id for entry in index.answers(new.question)] == [
        f"tarven/1/{sample}" for sample in range(4)
    ]
    assert step_means(index, "rlfh")[1]["truncated"] is None
    index.add(new)
    assert (
        index.answers(new.question)[4:] == [new]
        and step_means(index, "rlfh")[1]["truncated"] == 0.2
    )


def test_the_rows_tell_what_training_did_not_write_down(tmp_path: Path) -> None:
    """By hand: of the labels wrong, vague, hedged and correct the rewards are r, r + 1, r + 2.5
    and r + 3, r = 1.65509.
    """
    append_feedback(tmp_path, [rollout(step, sample) for step in (1, 2) for sample in range(4)])
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 2, "reward": 9.0, "kl": 0.5, "reward/truth": 4.0, "accuracy": null}\n'
    )
    first, second = run_steps(tmp_path)
    assert first["reward"] == pytest.approx(1.65509 + 6.5 / 4, abs=1e-5)
    # Deviations −1.625, −0.625, 0.875, 1.375: squares 2.640625 + 0.390625 + 0.765625 + 1.890625 =
    # 5.6875, over 3.
    assert first["reward_std"] == second["reward_std"] == pytest.approx((5.6875 / 3) ** 0.5)
    assert (second["reward"], second["kl"], second["part:truth"], second["accuracy"]) == (
        9.0,
        0.5,
        4.0,
        1.0,
    )
    titles = [note.text for note in run_curves({"run": tmp_path}).layout.annotations]
    assert titles[:2] == ["reward", "spread of the reward in a group"] and {
        "reward: truth",
        "accuracy",
        "length, tokens",
    } <= {*titles}
