"""The store of feedback: appended rows are read back, whatever byte a process was killed at."""

import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.errors import raises_error
from workbench.methods.truthrl.reward import binary, ternary
from workbench.metrics.rows import file_of
from workbench.pipeline import grade
from workbench.runs.store import (
    PASSAGES,
    QUESTIONS,
    ROLLOUTS,
    Store,
    append_feedback,
    iter_feedback,
    passage_key,
    put_feedback,
    read_questions,
)
from workbench.types import Feedback, Passage, Question, Response
from workbench.util.jsonl import append_json, iter_rows, repair, truncate_after_step, write_json
from workbench.verdicts import outcome

PASSAGE = Passage("p1", "Vetra", "Vetra is a city.", 0.75)
CITY = Question(
    "city",
    "Where was Toma Ardel born?",
    ("Vetra",),
    passages=(PASSAGE,),
    meta={"tier": "known", "lang": "en"},
)
BARE = Question(
    "bare",
    "Tell me about Toma Ardel.",
    kind="biography",
    checklist=("He paints.",),
    system="Think first.",
)


def feedbacks(
    steps: range = range(1),
    texts: tuple[str, ...] = ("Vetra", "Lomar \udc80 城\u2028\n", "I don't know."),
) -> list[Feedback]:
    responses = [
        Response(
            f"{step}-{i}",
            question,
            text,
            step=step,
            sample=i,
            token_ids=(1, 2),
            offsets=((0, 1), (1, len(text))),
        )
        for step in steps
        for i, (text, question) in enumerate(zip(texts, (CITY, BARE, CITY), strict=True))
    ]
    return grade([outcome()], {"ternary": ternary(), "binary": binary()})(responses)


def ids(path: Path) -> list[str]:
    return [row["id"] for row in iter_rows(path)]


def test_appended_rows_are_read_back(tmp_path: Path) -> None:
    rows = feedbacks(range(3))
    with Store(tmp_path / "run") as store:
        store.append(rows[:4])
        store.append([])
        store.append(rows[4:8])
        store.sync()
    append_feedback(tmp_path / "run", rows[8:])
    assert list(iter_feedback(tmp_path / "run")) == rows
    assert read_questions(tmp_path / "run") == {"city": CITY, "bare": BARE}
    assert ids(tmp_path / "run" / QUESTIONS) == ["city", "bare"]
    assert list(iter_rows(tmp_path / "run" / PASSAGES)) == [
        {"id": "p1", "title": "Vetra", "text": "Vetra is a city."}
    ]


@pytest.mark.slow
def test_killed_at_any_byte(tmp_path: Path) -> None:
    rows = [replace(row, rewards={}) for row in feedbacks(range(2))]
    append_feedback(tmp_path, rows)
    path = tmp_path / ROLLOUTS
    whole = path.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(whole) if byte == ord("\n"))]
    for size in range(starts[4], len(whole) + 1):
        path.write_bytes(whole[:size])
        # a row is complete without its newline
        complete = sum(end - 1 <= size for end in starts[1:])
        torn = size > starts[complete]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert len(ids(path)) == complete
            append_feedback(tmp_path, rows[complete:])
        assert len(caught) == 2 * torn, size  # the reader's and the writer's
        assert path.read_bytes() == whole


@pytest.mark.parametrize("name", [QUESTIONS, PASSAGES])
def test_killed_while_writing_a_question(tmp_path: Path, name: str) -> None:
    rows = feedbacks()
    append_feedback(tmp_path, rows)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / ROLLOUTS).unlink()  # a row is never written before its question
    (tmp_path / name).write_bytes(whole[:-9])
    with pytest.warns(UserWarning, match="cut off an unfinished last line"):
        append_feedback(tmp_path, rows)
    assert (tmp_path / name).read_bytes() == whole
    assert list(iter_feedback(tmp_path)) == rows


@pytest.mark.parametrize(
    "tail", [b"\0\0\0\0", b"\xff\xfe\n", b"[1, 2]\n", b'{"a": 1}}\n', b"{" * 200_000]
)
def test_a_last_line_of_garbage_is_cut(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + tail)
    with pytest.warns(UserWarning, match=f"cut off an unfinished last line of {len(tail)} bytes"):
        assert repair(path) == len(tail)
    assert path.read_bytes() == b'{"id": "a"}\n'
    assert repair(path) == 0


def test_a_bad_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path) -> None:
    append_feedback(tmp_path, feedbacks())
    path = tmp_path / ROLLOUTS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    for read in (lambda: ids(path), lambda: truncate_after_step(path, 0)):
        with raises_error(r"rollouts\.jsonl:2: not a JSON object"):
            read()
    assert path.read_bytes().splitlines(keepends=True)[2] == lines[2]
    with raises_error("no such file"):
        ids(tmp_path / "other.jsonl")


def test_an_id_names_one_question_or_passage(tmp_path: Path) -> None:
    append_feedback(tmp_path, feedbacks())
    before = (tmp_path / ROLLOUTS).read_bytes()
    changed = Question("city", "Where did Toma Ardel die?", ("Lomar",))
    with raises_error("two questions have the id 'city'"):
        append_feedback(tmp_path, [Feedback(Response("x", changed, "Lomar"))])
    other = Question("other", "Where?", passages=(Passage("p1", "Lomar", "Lomar is a city."),))
    with raises_error("two passages have the id 'p1'"):
        append_feedback(tmp_path, [Feedback(Response("x", other, "Lomar"))])
    assert (tmp_path / ROLLOUTS).read_bytes() == before
    (tmp_path / QUESTIONS).write_bytes(b"")
    with raises_error(r"question 'city' of row '0-0' is missing"):
        list(iter_feedback(tmp_path))


def test_keys_of_stored_content_are_the_same_in_every_process(tmp_path: Path) -> None:
    append_feedback(tmp_path, feedbacks())
    code = (
        "import sys; from workbench.runs import store;"
        " print(store.stored_keys(sys.argv[1], store.PASSAGES))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert shown == {f"{ ({PASSAGE.id: passage_key(PASSAGE)}) }\n"}


def test_a_stored_question_with_other_fields_is_refused(tmp_path: Path) -> None:
    append_feedback(tmp_path, [Feedback(Response("x", BARE, "?"))])
    row = json.loads((tmp_path / QUESTIONS).read_text())
    (tmp_path / QUESTIONS).write_text(json.dumps(dict(reversed(row.items()))) + "\n")
    # the order of the fields is irrelevant
    append_feedback(tmp_path, [Feedback(Response("y", BARE, "?"))])
    del row["system"]
    (tmp_path / QUESTIONS).write_text(json.dumps({**row, "old": 1}) + "\n")
    with raises_error(r"stored question 'bare' has other fields \(old, system\): another version"):
        append_feedback(tmp_path, [Feedback(Response("z", BARE, "?"))])


def test_values_invalid_in_json_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    row = feedbacks()[0]
    bad = replace(row, rewards={"broken": ternary(correct=float("nan"))(row)})
    with pytest.raises(ValueError, match="JSON"):
        append_feedback(tmp_path, [bad])
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b""}


def test_truncate_after_step(tmp_path: Path) -> None:
    path = tmp_path / ROLLOUTS
    append_feedback(tmp_path, feedbacks(range(3)))
    append_json(path, {"id": "evaluation", "step": None})
    append_json(path, {"id": "note"})
    whole = path.read_bytes()
    assert truncate_after_step(path, 2) == 0
    assert path.read_bytes() == whole
    assert truncate_after_step(path, 1) == 3
    assert ids(path) == "0-0 0-1 0-2 1-0 1-1 1-2 evaluation note".split()
    assert truncate_after_step(path, -1) == 6
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        [PASSAGES, QUESTIONS, ROLLOUTS]
    )


def test_write_json_is_atomic(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"name": "Vétra \udc80"})
    assert json.loads(path.read_bytes()) == {"name": "Vétra \udc80"}
    with pytest.raises(ValueError):
        write_json(path, {"value": float("nan")})
    with pytest.raises(TypeError):
        write_json(path, {"value": {1, 2}})
    assert json.loads(path.read_bytes()) == {"name": "Vétra \udc80"}
    assert list(tmp_path.iterdir()) == [path]


def test_the_error_for_a_duplicate_key_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"b": {"c": 1, "c": 2}}\n')
    with raises_error(r"rows\.jsonl:2: the key 'c' occurs twice"):
        list(iter_rows(path))
    assert repair(path) == 0  # the line is not removed


@pytest.mark.parametrize("name", [ROLLOUTS, QUESTIONS, PASSAGES])
def test_links_out_of_the_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    """In a folder of other people, their targets are neither read nor written."""
    for folder in ("run", "outside"):
        append_feedback(tmp_path / folder, feedbacks())
    run, target = tmp_path / "run", tmp_path / "outside" / name
    (run / name).rename(tmp_path / "kept.jsonl")
    (run / name).symlink_to(target)
    kept = target.read_bytes()
    for use in (
        lambda folder: list(iter_feedback(folder)),
        lambda folder: append_feedback(folder, feedbacks(range(1, 2))),
        file_of if name == ROLLOUTS else read_questions,
    ):
        with raises_error("is a link to a file outside its folder"):
            use(run)
    assert target.read_bytes() == kept
    (run / name).unlink()
    (run / name).symlink_to("within.jsonl")  # a link inside the folder is followed
    (tmp_path / "kept.jsonl").rename(run / "within.jsonl")
    assert list(iter_feedback(run)) == feedbacks()


def test_a_pipe_instead_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    append_feedback(tmp_path, feedbacks())
    (tmp_path / PASSAGES).unlink()
    os.mkfifo(tmp_path / PASSAGES)
    with raises_error("is not a file"):
        read_questions(tmp_path)


def test_put_replaces_a_row_and_keeps_the_others(tmp_path: Path) -> None:
    first, second, third = feedbacks()
    for row in (first, second, third):
        put_feedback(tmp_path, row)
    new = replace(second, error=None, cost=replace(second.cost, calls=7))
    put_feedback(tmp_path, new)
    assert list(iter_feedback(tmp_path)) == [first, third, new]
    # the state after a kill
    append_feedback(tmp_path, [replace(new, cost=replace(new.cost, calls=8))])
    put_feedback(tmp_path, new)
    assert list(iter_feedback(tmp_path)) == [first, third, new]
    put_feedback(tmp_path, first, remove=True)
    put_feedback(tmp_path, first, remove=True)  # already removed
    assert list(iter_feedback(tmp_path)) == [third, new]
