"""Read the runs that are stored in one folder. Each file is read when it is needed.

A run is a folder with a `rollouts.jsonl`, or another file of rows, such as the output of `workbench
score --out answers.jsonl`. A row is a response with its claims, verdicts and rewards (`Feedback`).
Runs may come from other people, so links out of the runs folder are not followed.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from workbench.runs.folder import in_use, settings_path
from workbench.runs.growing import Growing, add_objects, line_at
from workbench.runs.naming import labels
from workbench.runs.rows import Rows, at_hand, opened_rows, parse_object, read_rows
from workbench.runs.store import (
    PASSAGES,
    QUESTIONS,
    ROLLOUTS,
    check_inside,
    leads_out,
    question_from_row,
)
from workbench.types import Feedback, JsonMapping, JsonObject, Passage, Question, WorkbenchError
from workbench.util.jsonl import encodable

if TYPE_CHECKING:
    from pandas import Series

T = TypeVar("T")
LARGEST = 256  # rows of a group; in a damaged file all rows may have the same group
DEPTH = 3  # maximum depth of a run below the runs folder
# maximum characters of a run's name, and of the part shown in a message
MOST_CHARACTERS, SHORT = 1000, 80
METRICS = "metrics.jsonl"
INSIDE = {"checkpoints", "policy"}  # folders of a run, which contain no runs

# exceptions that reading a damaged file may raise
DAMAGE = (
    *(OSError, ArithmeticError, AssertionError, AttributeError),
    *(LookupError, RecursionError, TypeError, ValueError),
)


class QuestionInfo(NamedTuple):
    """The text, kind and tier of a question; a field is "" if it is unknown.

    The tier says how correctly the training data states the question's facts, such as "known".
    """

    text: str
    kind: str
    tier: str


@contextlib.contextmanager
def damage(what: str) -> Iterator[None]:
    """Context manager that converts errors from damaged files into a WorkbenchError.

    Args:
        what: name of the damaged object in the error message, such as "run 'a'".
    """
    try:
        yield
    except WorkbenchError:
        raise
    except DAMAGE as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise WorkbenchError(
            f"{what} is damaged ({reason}): repair it, or move it out of the runs folder"
        ) from None


class Runs:
    """The runs in the folder `root`. A run's name is its path relative to `root`."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def names(self) -> list[str]:
        """Return the names of the runs that have rollouts, sorted."""
        names = (path.relative_to(self.root).as_posix() for path in self._walk(self.root, 0))
        # the page could not send back a name that is not UTF-8
        return sorted(name for name in names if encodable(name) == name)

    def labels(self) -> dict[str, str]:
        """Return run name -> label, a short description of the run.

        If a hash is the name of a run's folder, the label has the run's settings, such as "truthrl
        reward=binary seed 2". The label of any other run is its name.
        """
        configs: dict[str, JsonMapping] = {}
        for name in self.names():
            configs[name] = {}
            with contextlib.suppress(WorkbenchError):  # the list of runs shows the error
                configs[name] = self.described(name, "config.json")
        return labels(configs)

    def folder(self, name: str) -> Path:
        """Return the folder that contains a run's file of rows.

        Raises:
            WorkbenchError: no run has this name, or the path is outside the runs folder or contains
                a link.
        """
        return self.file(name).parent

    def file(self, name: str) -> Path:
        """Return the file of a run's rows.

        Raises:
            WorkbenchError: no run has this name, or the path is outside the runs folder or contains
                a link.
        """
        parts, short = Path(name).parts, name[:SHORT]
        path = self.root.joinpath(*parts)
        refused = Path(name).is_absolute() or ".." in parts or "\0" in name
        refused = refused or len(parts) > DEPTH or len(name) > MOST_CHARACTERS
        with damage(f"'{short}'"):
            # a refused name can have thousands of parts: do not walk them
            below = () if refused else (path, *path.parents)[: len(parts)]
            if refused or any(path.is_symlink() for path in below):
                raise WorkbenchError(f"'{short}' is not inside the runs folder: choose another run")
            file = path if _is_rows(path) else path / ROLLOUTS
            if not _is_own_file(file):
                raise WorkbenchError(
                    f"no run '{short}' with a {ROLLOUTS} in the runs folder: choose another run"
                )
        return file

    def rows(self, name: str) -> Rows:
        """Return the rows of a run, or the last rows of a large file that is still being read.

        `Rows.missing` is the number of rows that have not been read yet.
        """
        return self._read(name, opened_rows)

    def all_rows(self, name: str) -> Rows:
        """Return all rows of a run, however long reading takes."""
        return self._read(name, read_rows)

    def at_hand(self, name: str) -> bool:
        """Return whether a run's rows can be read without delay.

        If not, the stored index of the rows, if there is one, is loaded in the background.
        """
        return self._read(name, at_hand)

    def _read(self, name: str, read: Callable[[Path], T]) -> T:
        with damage(f"run '{name}'"):
            return read(self.file(name))

    def number(self, name: str, row: str) -> int:
        """Return the number (from 0) of the row with the id `row`.

        Raises:
            WorkbenchError: there is no such row.
        """
        for rows in (self.rows, self.all_rows):  # reading all rows of a large run takes long
            if (number := rows(name).numbers.get(row)) is not None:
                return number
        raise WorkbenchError(f"run '{name}' has no row '{row[:SHORT]}': choose another row")

    def row(self, name: str, number: int) -> "Series":
        """Return row `number` (from 0) of a run's table: id, step, outcome, rewards and others.

        Raises:
            WorkbenchError: there is no such row.
        """
        rows = self.rows(name)
        if not 0 <= number < rows.total:
            raise WorkbenchError(
                f"run '{name}' has no row {number + 1}: choose a row from 1 to {rows.total}"
            )
        return (rows if number >= rows.missing else self.all_rows(name)).table.loc[number]

    def feedback(self, name: str, number: int, rows: Rows | None = None) -> Feedback:
        """Return row `number` (from 0) of a run as feedback, with its question.

        Args:
            rows: the run's rows; None to read them.
        """
        with damage(f"row {number + 1} of run '{name}'"):
            columns = self.row(name, number) if rows is None else rows.table.loc[number]
            line = line_at(self.file(name), columns["offset"])
            row = json.loads(line, parse_constant=_not_a_number)
            if str(row.get("id", columns["id"])) != columns["id"]:
                raise ValueError("rollouts.index.parquet does not match this row: remove that file")
            return Feedback.from_row(row, self.question(name, str(row.get("question_id"))))

    def group(self, name: str, number: int) -> list[Feedback]:
        """Return all responses to the prompt of row `number` (from 0), including this row.

        Return [] in three cases: a row is damaged, the file is not read completely yet, or the
        group has more than 256 rows (`LARGEST`).
        """
        rows = self.rows(name)
        if rows.missing:
            return []
        group = rows.table["group"][number]
        members = rows.table.index[rows.table["group"] == group] if group else [number]
        if len(members) > LARGEST:
            return []
        try:
            return [self.feedback(name, member, rows) for member in members]
        except WorkbenchError:
            return []

    def policy(self, name: str) -> Path | None:
        """Return the run's folder if it has a trained policy, else None.

        A policy with links out of the runs folder is ignored.
        """
        folder = self.folder(name)
        policy = folder / "policy"
        return folder if policy.is_dir() and not leads_out(policy, self.root) else None

    def question(self, name: str, question_id: str) -> Question:
        """Return the stored question with this id, with its passages.

        If the run has not stored the question, return a question whose text is "".
        """
        row = self._stored(self.folder(name) / QUESTIONS, question_id)
        if row is None:
            return Question(question_id, "")
        passages = (self.passage(name, item["id"]) for item in row["passages"])
        return question_from_row(row, {one.id: one for one in passages if one})

    def question_info(self, name: str) -> dict[str, QuestionInfo]:
        """Return question id -> `QuestionInfo` of a run; {} if the run has no stored questions."""
        path = self.folder(name) / QUESTIONS
        with damage(f"run '{name}': {QUESTIONS}"):
            return _question_info.read(path) if _is_own_file(path) else {}

    def lines(self, name: str, offsets: Iterable[int]) -> Iterator[bytes]:
        """Yield the lines of the run's file of rows that begin at these byte offsets."""
        with damage(f"run '{name}'"), self.file(name).open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                yield file.readline()

    def stamp(self, name: str) -> list[int]:
        """Return numbers that change when the run's files or its status change."""
        with damage(f"run '{name}'"):
            rows, folder = self.file(name), self.folder(name)
            paths = (rows, folder / METRICS, folder / "summary.json")
            stats = [path.stat() for path in paths if path.is_file()]
            numbers = [number for stat in stats for number in (stat.st_size, stat.st_mtime_ns)]
            return [*numbers, self.in_use(name), self.at_hand(name)]

    def in_use(self, name: str) -> bool:
        """Return whether a process is training the run, that is, holds the lock of its folder."""
        folder = self.folder(name)
        return _is_own_file(folder / ".lock") and in_use(folder)

    def passage(self, name: str, passage_id: str) -> Passage | None:
        """Return the run's stored passage with this id, or None."""
        row = self._stored(self.folder(name) / PASSAGES, passage_id)
        return None if row is None else Passage(row["id"], row["title"], row["text"])

    def metrics(self, name: str) -> Sequence[JsonMapping]:
        """Return the rows of the run's metrics.jsonl; () if there is no such file.

        They are cached until the file changes.
        """
        path = self.folder(name) / METRICS
        with damage(f"run '{name}': {path.name}"):
            return _metrics.read(path) if _is_own_file(path) else ()

    def described(self, name: str, file: str) -> JsonObject:
        """Return the content of a JSON file of the run, such as "config.json".

        Return {} if the file is missing.
        """
        path = self.folder(name) / file
        with damage(f"run '{name}': {file}"):
            content = json.loads(path.read_text(encoding="utf-8")) if _is_own_file(path) else {}
            if not isinstance(content, dict):
                raise ValueError(f"a {type(content).__name__} where a JSON object is expected")
            return content

    def settings(self, name: str) -> dict[str, JsonObject]:
        """Return method -> the stored config with which the run was trained or scored."""
        trained = self.described(name, "config.json")
        scored = self.described(name, settings_path(self.file(name)).name)
        by_method = dict(scored.get("config", {}))
        if "method" in trained:
            by_method[trained["method"]] = trained.get("config", {})
        for method, config in by_method.items():
            if not isinstance(config, dict):
                raise WorkbenchError(
                    f"run '{name}' is damaged: the settings of {method} are not an object: fix"
                    " config.json, or move the run's folder away"
                )
        return by_method

    def _stored(self, path: Path, row_id: str) -> JsonObject | None:
        """Return the row with the id `row_id` in a file of questions or passages, or None.

        Raises:
            WorkbenchError: the file is a link out of the folder.
        """
        check_inside(path)
        offset = _offsets.read(path).get(row_id) if path.is_file() else None
        if offset is None:
            return None
        return json.loads(line_at(path, offset), parse_constant=_not_a_number)

    def _walk(self, folder: Path, depth: int) -> Iterator[Path]:
        """Yield the runs below a folder, without following links."""
        try:
            if depth > DEPTH or not folder.is_dir():
                return
            if depth and _is_own_file(folder / ROLLOUTS):
                yield folder
                return
            inside = list(folder.iterdir())
        except OSError:  # no read permission, or just removed
            return
        for below in inside:
            if below.name in INSIDE or below.name.startswith("."):
                continue
            if below.is_dir() and not below.is_symlink():
                yield from self._walk(below, depth + 1)
            elif depth < DEPTH and _is_rows(below):
                yield below


def _is_own_file(path: Path) -> bool:
    """Whether the path is a file and not a link."""
    return path.is_file() and not path.is_symlink()


def _is_rows(path: Path) -> bool:
    """Whether the path is a file of feedback rows, other than a folder's `rollouts.jsonl`."""
    if path.suffix != ".jsonl" or path.name == ROLLOUTS or not _is_own_file(path):
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        return re.match(rb'\{"schema": ?\d', file.read(20)) is not None
    return False


def _add_offsets(offsets: dict[str, int], offset: int, lines: list[bytes]) -> dict[str, int]:
    """Add row id -> byte offset of each of `lines` to `offsets`, and return it.

    `offset` is the position of the first line. Lines without an id are skipped.
    """
    for line in lines:
        with contextlib.suppress(KeyError):
            offsets[str(parse_object(line)["id"])] = offset
        offset += len(line)
    return offsets


def _not_a_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _add_questions(
    questions: dict[str, QuestionInfo], offset: int, lines: list[bytes]
) -> dict[str, QuestionInfo]:
    for row in map(parse_object, lines):
        meta = row.get("meta")
        tier = meta.get("tier") if isinstance(meta, dict) else None
        columns = (row.get("text"), row.get("kind"), tier)
        texts = (text if isinstance(text, str) else "" for text in columns)
        questions[str(row.get("id"))] = QuestionInfo(*texts)
    return questions


_question_info: Growing[dict[str, QuestionInfo]] = Growing(dict, _add_questions)
_offsets: Growing[dict[str, int]] = Growing(dict, _add_offsets)
_metrics: Growing[list[JsonObject]] = Growing(list, add_objects, cached_files=64)
