"""An append-only record of feedback, and tables read from it.

A run's folder holds `rollouts.jsonl` (a row for each response, see `Feedback.to_row`), and
beside it, each written once, `questions.jsonl` and `passages.jsonl`. A file of feedback may have
another name (`workbench score --out FILE`): where a folder is asked for, such a file can be
named as well. Whatever a row refers to is written before the row, so that a process killed at
any byte leaves a record that can be read and continued. Links out of the folder are refused: a
record may come from other people.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.types import Feedback, JsonMapping, JsonObject, Passage, Question, WorkbenchError
from workbench.util.jsonl import encode, iter_rows, open_append, replace_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PASSAGES",
    "QUESTIONS",
    "ROLLOUTS",
    "Store",
    "append_feedback",
    "iter_feedback",
    "put_feedback",
    "read_passages",
    "read_questions",
    "table",
]

ROLLOUTS, QUESTIONS, PASSAGES = "rollouts.jsonl", "questions.jsonl", "passages.jsonl"
# of their rows, at the least
FIELDS = {QUESTIONS: {"id", "text", "answers", "passages"}, PASSAGES: {"id", "title", "text"}}
COLUMNS = (
    "id",
    "question_id",
    "group",
    "step",
    "sample",
    "finish",
    "kind",
    "tier",
    "lang",
    "outcome",
    "length",
)


class Store:
    """The record at `path`, a folder or a file of feedback, open for appending. Use it as a
    context manager, or `close` it.

    Raises:
        WorkbenchError: a line of its files, other than the last, cannot be read.
    """

    def __init__(self, path: Path | str) -> None:
        self.folder, self._rollouts = place(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        check_folder(self.folder)
        self._files = {
            name: open_append(self.folder / name) for name in (PASSAGES, QUESTIONS, self._rollouts)
        }
        # id -> hash of the row, so that an id cannot come to mean two things
        self._known = {
            PASSAGES: stored_passages(self.folder),
            QUESTIONS: stored_questions(self.folder),
        }

    def append(self, feedbacks: Sequence[Feedback]) -> list[JsonObject]:
        """Add rows, with the questions and passages that are new, hand them to the operating
        system, and return them.

        The passages are those of the questions, and those retrieved for a row, which evidence
        refers to by id.
        """
        questions = list({id(f.response.question): f.response.question for f in feedbacks}.values())
        rows = [feedback.to_row() for feedback in feedbacks]
        lines = [encode(row) for row in rows]  # before anything is written: this may raise
        inside = (passage for question in questions for passage in question.passages)
        retrieved = (passage for feedback in feedbacks for passage in feedback.passages)
        self._add(PASSAGES, map(_passage_row, (*inside, *retrieved)))
        self._add(QUESTIONS, (_question_row(question) for question in questions))
        self._write(self._rollouts, lines)
        return rows

    def sync(self) -> None:
        """Wait until everything is on the disk: for a checkpoint that counts on it."""
        for file in self._files.values():
            os.fsync(file.fileno())

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, name: str, rows: Iterable[JsonMapping]) -> None:
        """Write the rows whose id is new."""
        added: dict[str, JsonMapping] = {}
        new = dict(self._known[name])
        for row in rows:
            if row["id"] not in new:
                new[row["id"]] = _hash(row)
                added[row["id"]] = row
            elif new[row["id"]] != _hash(row):
                stored = added.get(row["id"]) or next(
                    r for r in iter_rows(self.folder / name) if r["id"] == row["id"]
                )
                raise WorkbenchError(_conflict(name.removesuffix("s.jsonl"), stored, row))
        self._write(name, [encode(row) for row in added.values()])
        self._known[name] = new

    def _write(self, name: str, lines: Sequence[bytes]) -> None:
        self._files[name].write(b"".join(lines))
        self._files[name].flush()


def place(path: Path | str) -> tuple[Path, str]:
    """The folder of a record and the name of its file of feedback; `path` is the folder, or that
    file with its suffix.

    Raises:
        WorkbenchError: the folder's file of feedback is a link, as for `check_inside`.
    """
    path = Path(path)
    if path.suffix == ".jsonl" and not path.is_dir():
        return path.parent, path.name
    check_inside(path / ROLLOUTS)
    return path, ROLLOUTS


def check_inside(path: Path) -> None:
    """Refuse a file of a record that leads out of the record's folder, or that is no file.

    Raises:
        WorkbenchError: it is a link out of the folder, or a folder, a pipe or a device.
    """
    if path.is_symlink() and leads_out(path, path.parent):
        raise WorkbenchError(
            f"'{path}' is a link that leads out of its folder: put the file itself there, or name"
            " it where it is"
        )
    if path.exists() and not path.is_file():
        raise WorkbenchError(f"'{path}' is no file: rename it, or name another folder")


def leads_out(path: Path, root: Path) -> bool:
    """Whether `path`, its links followed, lies outside `root`."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def append_feedback(folder: Path | str, feedbacks: Sequence[Feedback]) -> None:
    """Open the record in `folder`, append, close. Many appends are faster through one open
    `Store`.
    """
    with Store(folder) as store:
        store.append(feedbacks)


def put_feedback(folder: Path | str, feedback: Feedback, *, remove: bool = False) -> None:
    """Append a row and take out an earlier one of its id; `remove`: take that one out alone.

    For records that people write, which are small. A process that is killed leaves both: the
    later one counts.
    """
    if not remove:
        append_feedback(folder, [feedback])
    path = Path(folder) / ROLLOUTS
    rows = list(iter_rows(path)) if path.is_file() else []
    last = [] if remove else rows[-1:]
    kept = [row for row in rows if row["id"] != feedback.response.id] + last
    if len(kept) < len(rows):
        replace_rows(path, map(encode, kept))


def iter_feedback(path: Path | str) -> Iterator[Feedback]:
    """The feedback recorded at `path`, in order, as it was appended (but for `prompt_ids`, which
    are not stored).
    """
    folder, rollouts = place(path)
    questions = read_questions(folder)
    for row in iter_rows(folder / rollouts):
        if (question := questions.get(row["question_id"])) is None:
            raise WorkbenchError(
                f"{folder / QUESTIONS}: question '{row['question_id']}' of row '{row['id']}' is"
                " missing"
            )
        yield Feedback.from_row(row, question)


def read_questions(folder: Path | str) -> dict[str, Question]:
    """The questions recorded in `folder` by id, with their passages."""
    folder = Path(folder)
    check_folder(folder)
    passages = read_passages(folder)
    return {row["id"]: question_from_row(row, passages) for row in iter_rows(folder / QUESTIONS)}


def read_passages(folder: Path | str) -> dict[str, Passage]:
    """The passages recorded in `folder` by id: those of the questions, and those that were
    retrieved for claims.
    """
    rows = _own_rows(Path(folder) / PASSAGES)
    return {row["id"]: Passage(row["id"], row["title"], row["text"]) for row in rows}


def question_key(question: Question) -> int:
    """What tells apart two questions of one id; it differs from process to process."""
    return _hash(_question_row(question))


def passage_key(passage: Passage) -> int:
    """The same for passages; its score is not part of what a passage is."""
    return _hash(_passage_row(passage))


def stored_questions(folder: Path | str) -> dict[str, int]:
    """The questions recorded in `folder`, if there are any: id -> `question_key`.

    Raises:
        WorkbenchError: the file there is not a record's, as for `stored_passages`.
    """
    return _stored(Path(folder) / QUESTIONS)


def stored_passages(folder: Path | str) -> dict[str, int]:
    """The passages recorded in `folder`, if there are any: id -> `passage_key`."""
    return _stored(Path(folder) / PASSAGES)


def _stored(path: Path) -> dict[str, int]:
    return {row["id"]: _hash(row) for row in _own_rows(path)}


def _own_rows(path: Path) -> Iterator[JsonObject]:
    """The rows of a file of the record, if there is one."""
    _check_ours(path)
    return iter_rows(path) if path.exists() else iter(())


def check_folder(folder: Path) -> None:
    """Raise a WorkbenchError if a file of that name in `folder` is not a record's."""
    for name in (PASSAGES, QUESTIONS):
        _check_ours(folder / name)


def _check_ours(path: Path) -> None:
    """Raise a WorkbenchError for a file that another program wrote, before it is changed."""
    check_inside(path)
    if not path.exists():
        return
    with path.open("rb") as file:
        line = file.readline()
    try:
        first = json.loads(line)
    except ValueError:
        if not line.endswith(b"\n"):  # half a line: a file that was begun
            return
        first = None
    if not (isinstance(first, dict) and FIELDS[path.name] <= first.keys()):
        raise WorkbenchError(
            f"'{path}' is not what a record of feedback has: use another folder, or rename that"
            " file"
        )


def table(path: Path | str) -> pd.DataFrame:
    """A row for each response: `COLUMNS` and `reward_<method>` for each method; what is missing
    is NA.

    `kind`, `tier` and `lang` are the question's, `length` counts tokens.
    """
    import pandas as pd

    folder, rollouts = place(path)
    questions = {row["id"]: row for row in _own_rows(folder / QUESTIONS)}
    rows = []
    for row in iter_rows(folder / rollouts):
        question = questions.get(row["question_id"], {"kind": None, "meta": {}})
        outcomes = (one["label"] for one in row["verdicts"] if one["target"] == "outcome")
        rewards = {f"reward_{name}": reward["value"] for name, reward in row["rewards"].items()}
        flat = {**question["meta"], **row, **rewards, "kind": question["kind"]}
        flat |= {"outcome": next(outcomes, None), "length": len(row["tokens"]["offsets"])}
        rows.append({name: flat.get(name) for name in (*COLUMNS, *rewards)})
    methods = dict.fromkeys(name for row in rows for name in row if name.startswith("reward_"))
    types = dict.fromkeys(("step", "sample", "length"), "Int64") | dict.fromkeys(methods, "Float64")
    return pd.DataFrame(rows, columns=[*COLUMNS, *methods]).astype(types)


def _hash(row: JsonMapping) -> int:
    return hash(json.dumps(row, sort_keys=True))


def _conflict(what: str, stored: JsonMapping, row: JsonMapping) -> str:
    """Why two rows of one id cannot be the same: other values, or fields of another version."""
    old, new = json.loads(encode(stored)), json.loads(encode(row))
    if differ := [name for name in new if name in old and old[name] != new[name]]:
        return (
            f"two {what}s have the id '{row['id']}' and differ in {', '.join(differ)}: "
            "give each its own id, or use another folder"
        )
    fields = ", ".join(sorted(old.keys() ^ new.keys()))
    return (
        f"the stored {what} '{row['id']}' has other fields ({fields}): another version of the"
        " workbench wrote it, so use another folder"
    )


def _passage_row(passage: Passage) -> JsonObject:
    return {"id": passage.id, "title": passage.title, "text": passage.text}


def _question_row(question: Question) -> JsonObject:
    """A passage is kept by id, with the score that it had for this question."""
    return {
        "id": question.id,
        "text": question.text,
        "answers": question.answers,
        "title": question.title,
        "passages": [{"id": passage.id, "score": passage.score} for passage in question.passages],
        "checklist": question.checklist,
        "kind": question.kind,
        "system": question.system,
        "meta": dict(question.meta),
    }


def question_from_row(row: JsonMapping, passages: Mapping[str, Passage]) -> Question:
    """A stored question; `passages` are the stored ones, by id."""
    scored = tuple(replace(passages[item["id"]], score=item["score"]) for item in row["passages"])
    lists = {name: tuple(row[name]) for name in ("answers", "checklist")}
    return Question(**{**row, **lists, "passages": scored})
