"""An append-only store of feedback: responses with their claims, verdicts and rewards.

A store is a folder with `rollouts.jsonl` (one row per response, see `Feedback.to_row`),
`questions.jsonl` and `passages.jsonl`. The file of rows may have another name (`workbench score
--out FILE`). The path of a store is its folder or its file of rows.

Questions and passages are written before the rows that refer to them. So a store can be read and
continued after its process was killed. Links that lead out of the folder are refused, because a
store may come from other people.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.types import Feedback, JsonMapping, JsonObject, Passage, Question, WorkbenchError
from workbench.util.jsonl import encode, iter_rows, json_digest, open_append, replace_rows

ROLLOUTS, QUESTIONS, PASSAGES = "rollouts.jsonl", "questions.jsonl", "passages.jsonl"
# subfolder of a run with a store of evaluations: its two files have the greedy answers before and
# after the training
EVALUATION, BEFORE, AFTER = "evaluation", "before.jsonl", "after.jsonl"
# required fields of a row
FIELDS = {QUESTIONS: {"id", "text", "answers", "passages"}, PASSAGES: {"id", "title", "text"}}


class Store:
    """Context manager that appends graded responses to a folder.

    The folder has rollouts.jsonl (one row per response), questions.jsonl and passages.jsonl.

    Args:
        path: the folder. If it ends in .jsonl: the file for the responses in that folder.

    Raises:
        WorkbenchError: questions.jsonl or passages.jsonl was not written by a `Store`, or has a
            line that cannot be read (the last line may be unfinished).
    """

    def __init__(self, path: Path | str) -> None:
        self.folder, self._rollouts = locate(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        check_folder(self.folder)
        self._files = {
            name: open_append(self.folder / name) for name in (PASSAGES, QUESTIONS, self._rollouts)
        }
        # id -> hash of the row, to detect different rows with the same id
        self._hashes = {name: stored_keys(self.folder, name) for name in FIELDS}

    def append(self, feedbacks: Sequence[Feedback]) -> list[JsonObject]:
        """Write one row per response. Questions and passages that are new are written, too.

        Returns:
            The rows of the responses.

        Raises:
            WorkbenchError: a question or passage has the same id as a different stored one.
        """
        questions = list({id(f.response.question): f.response.question for f in feedbacks}.values())
        rows = [feedback.to_row() for feedback in feedbacks]
        lines = [encode(row) for row in rows]  # may raise, so before the first write
        # passages before questions before rows: a kill leaves no dangling reference
        own = (passage for question in questions for passage in question.passages)
        retrieved = (passage for feedback in feedbacks for passage in feedback.passages)
        self._add(PASSAGES, map(_passage_row, (*own, *retrieved)))
        self._add(QUESTIONS, map(_question_row, questions))
        self._write(self._rollouts, lines)
        return rows

    def sync(self) -> None:
        """Wait until all written rows are on the disk.

        A training calls this method before it writes a checkpoint.
        """
        for file in self._files.values():
            os.fsync(file.fileno())

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, name: str, rows: Iterable[JsonMapping]) -> None:
        """Append the rows with new ids to the file `name`.

        Raises:
            WorkbenchError: a row has the id of a different row.
        """
        new: dict[str, JsonMapping] = {}
        hashes = dict(self._hashes[name])
        for row in rows:
            if row["id"] not in hashes:
                hashes[row["id"]] = json_digest(row)
                new[row["id"]] = row
            elif hashes[row["id"]] != json_digest(row):
                stored = new.get(row["id"]) or next(
                    r for r in iter_rows(self.folder / name) if r["id"] == row["id"]
                )
                raise WorkbenchError(_conflict(name.removesuffix("s.jsonl"), stored, row))
        self._write(name, [encode(row) for row in new.values()])
        self._hashes[name] = hashes

    def _write(self, name: str, lines: Sequence[bytes]) -> None:
        self._files[name].write(b"".join(lines))
        self._files[name].flush()


def locate(path: Path | str) -> tuple[Path, str]:
    """Return the folder of a store, and the name of its file with one row per response.

    "runs/a" → ("runs/a", "rollouts.jsonl"); "runs/a/new.jsonl" → ("runs/a", "new.jsonl"). The
    folder is returned as a `Path`.

    Raises:
        WorkbenchError: rollouts.jsonl is a link to a file outside the folder, or is not a file.
    """
    path = Path(path)
    if path.suffix == ".jsonl" and not path.is_dir():
        return path.parent, path.name
    check_inside(path / ROLLOUTS)
    return path, ROLLOUTS


def check_inside(path: Path) -> None:
    """Check that a file of a store lies in the store's folder.

    Raises:
        WorkbenchError: the path is a link to a file outside its folder, or is not a file.
    """
    if path.is_symlink() and leads_out(path, path.parent):
        raise WorkbenchError(
            f"'{path}' is a link to a file outside its folder: copy that file into the folder, or"
            " pass the path of that file"
        )
    if path.exists() and not path.is_file():
        raise WorkbenchError(f"'{path}' is not a file: rename it, or use another folder")


def leads_out(path: Path, root: Path) -> bool:
    """Return whether `path`, or anything in it, lies outside the folder `root`.

    Links are followed.
    """
    base, left, seen = os.path.realpath(root), [str(path)], set[str]()
    while left:
        one = os.path.realpath(left.pop())
        if not Path(one).is_relative_to(base):
            return True
        if one not in seen and os.path.isdir(one):
            seen.add(one)
            left += (os.path.join(one, name) for name in os.listdir(one))
    return False


def append_feedback(folder: Path | str, feedbacks: Sequence[Feedback]) -> None:
    """Append feedback rows to the store in `folder`. For many calls, an open `Store` is faster."""
    with Store(folder) as store:
        store.append(feedbacks)


def put_feedback(folder: Path | str, feedback: Feedback, *, remove: bool = False) -> None:
    """Store one response, in place of an earlier row with the same id if there is one.

    The new row is appended first, and then the old row is removed. If the process is killed between
    these steps, both rows remain, and the later one is valid. Removing rewrites the whole file, so
    use this function for small stores only.

    Args:
        remove: True removes the row with this id and writes no new row.
    """
    # appended before the old row is removed, so that a kill loses neither
    if not remove:
        append_feedback(folder, [feedback])
    path = Path(folder) / ROLLOUTS
    rows = list(iter_rows(path)) if path.is_file() else []
    # the new row is the last one; an older row with its id is dropped
    last = [] if remove else rows[-1:]
    remaining = [row for row in rows if row["id"] != feedback.response.id] + last
    if len(remaining) < len(rows):
        replace_rows(path, map(encode, remaining))


def iter_feedback(path: Path | str) -> Iterator[Feedback]:
    """Yield the stored responses with their claims, verdicts and rewards, in order.

    Three fields of `Feedback` are not read and keep their defaults: `response.prompt_ids`,
    `response.given_claims`, and `passages` (the judge's search results).

    Raises:
        WorkbenchError: the question of a row is missing in questions.jsonl.
    """
    folder, rollouts = locate(path)
    questions = read_questions(folder)
    for row in iter_rows(folder / rollouts):
        if (question := questions.get(row["question_id"])) is None:
            raise WorkbenchError(
                f"{folder / QUESTIONS}: question '{row['question_id']}' of row '{row['id']}' is"
                " missing: copy questions.jsonl from the original folder"
            )
        yield Feedback.from_row(row, question)


def read_questions(folder: Path | str) -> dict[str, Question]:
    """Return the stored questions by id, with their passages."""
    folder = Path(folder)
    check_folder(folder)
    passages = read_passages(folder)
    return {row["id"]: question_from_row(row, passages) for row in iter_rows(folder / QUESTIONS)}


def read_passages(folder: Path | str) -> dict[str, Passage]:
    """Return the stored passages by id: the passages of questions and the search results."""
    rows = _stored_rows(Path(folder) / PASSAGES)
    return {row["id"]: Passage(row["id"], row["title"], row["text"]) for row in rows}


def question_key(question: Question) -> str:
    """Return a hash of a question's content; equal questions have equal hashes in every process."""
    return json_digest(_question_row(question))


def passage_key(passage: Passage) -> str:
    """Return a hash of a passage's id, title and text.

    Equal passages have equal hashes in every process.
    """
    return json_digest(_passage_row(passage))


def stored_keys(folder: Path | str, name: str) -> dict[str, str]:
    """Return id -> content hash of all stored questions or passages; {} if the file is missing.

    The hashes are the same as `question_key` and `passage_key` compute.

    Args:
        name: "questions.jsonl" or "passages.jsonl".

    Raises:
        WorkbenchError: the file was not written by a `Store`.
    """
    return {row["id"]: json_digest(row) for row in _stored_rows(Path(folder) / name)}


def _stored_rows(path: Path) -> Iterator[JsonObject]:
    """Iterate over the rows of a file of questions or passages; no rows if the file is missing.

    Raises:
        WorkbenchError: another program wrote the file.
    """
    _check_format(path)
    return iter_rows(path) if path.exists() else iter(())


def check_folder(folder: Path) -> None:
    """Check that a `Store` wrote questions.jsonl and passages.jsonl in `folder`, if they exist.

    Raises:
        WorkbenchError: the first line of a file lacks a field that a `Store` always writes.
    """
    for name in (PASSAGES, QUESTIONS):
        _check_format(folder / name)


def _check_format(path: Path) -> None:
    """Raise a WorkbenchError if another program wrote the file, to protect it from changes."""
    check_inside(path)
    if not path.exists():
        return
    with path.open("rb") as file:
        line = file.readline()
    try:
        first = json.loads(line)
    except ValueError:
        if not line.endswith(b"\n"):  # an unfinished first line
            return
        first = None
    if not (isinstance(first, dict) and FIELDS[path.name] <= first.keys()):
        raise WorkbenchError(
            f"'{path}' is not a file of stored feedback: use another folder, or rename that file"
        )


def _conflict(what: str, stored: JsonMapping, row: JsonMapping) -> str:
    """Return the message for two different rows with the same id.

    It names the fields whose values differ, or the fields that only one of the rows has.
    """
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
    """Return the row that is stored for a question.

    Of each passage it has only the id and the score.
    """
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
    """Convert a row of questions.jsonl to a `Question`.

    Args:
        passages: the stored passages by id. Of each passage, the row has only the id and the score.
    """
    scored = tuple(replace(passages[item["id"]], score=item["score"]) for item in row["passages"])
    lists = {name: tuple(row[name]) for name in ("answers", "checklist")}
    return Question(**{**row, **lists, "passages": scored})
