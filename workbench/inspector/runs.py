"""Read stored runs below one folder, lazily.

A run may come from other people, so links are not followed: linked files are left out, and a
linked record is an error.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.runs.folder import in_use
from workbench.runs.growing import Growing, add_objects, line_at
from workbench.runs.rows import Rows, at_hand, opened_rows, parse_object, read_rows
from workbench.runs.store import (
    PASSAGES,
    QUESTIONS,
    ROLLOUTS,
    check_inside,
    leads_out,
    question_from_row,
)
from workbench.scoring.output import settings_path
from workbench.types import Feedback, Passage, Question, WorkbenchError

if TYPE_CHECKING:
    from pandas import Series

DEPTH = 3  # how deep below the runs folder a run may lie
# characters of a run's name that is looked for, and of one that is shown in a message
LONGEST, NAMED = 1000, 80
METRICS = "metrics.jsonl"
INSIDE = {"checkpoints", "policy"}  # folders of a run: no runs are looked for in them

_ID = re.compile(rb'\{"id": ("(?:[^"\\]|\\.)*"),')


class Asked(NamedTuple):
    """What lists show of a question."""

    text: str
    kind: str
    tier: str


@contextlib.contextmanager
def damage(what: str) -> Iterator[None]:
    """Turn any error that damaged files cause into a one-line WorkbenchError."""
    try:
        yield
    except WorkbenchError:
        raise
    except (
        OSError,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise WorkbenchError(
            f"{what} is damaged ({reason}): mend it, or move it out of the runs folder"
        ) from None


class Runs:
    """The runs below `root`, named by their path from there; links out of it are refused."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def names(self) -> list[str]:
        """The runs that have recorded anything, sorted by name."""
        return sorted(
            name
            for folder in self._walk(self.root, 0)
            if _is_text(name := folder.relative_to(self.root).as_posix())
        )

    def folder(self, name: str) -> Path:
        """The folder of a run.

        Raises:
            WorkbenchError: the name leads out of the runs folder, through a link, or to no run.
        """
        parts, short = Path(name).parts, name[:NAMED]
        folder = self.root.joinpath(*parts)
        refused = Path(name).is_absolute() or ".." in parts or "\0" in name
        refused = refused or len(parts) > DEPTH or len(name) > LONGEST
        with damage(f"'{short}'"):
            # a refused name can have thousands of parts: do not walk them
            below = () if refused else (folder, *folder.parents)[: len(parts)]
            if refused or any(path.is_symlink() for path in below):
                raise WorkbenchError(
                    f"'{short}' is not below the runs folder: name a run of the list"
                )
            if not _is_run(folder):
                raise WorkbenchError(
                    f"no run '{short}' with a {ROLLOUTS} in the runs folder: name a run of the list"
                )
        return folder

    def rows(self, name: str) -> Rows:
        """The rows of a run; of a large one that is still being read, its last rows (`missing`
        counts the others).
        """
        with damage(f"run '{name}'"):
            return opened_rows(self.folder(name) / ROLLOUTS)

    def all_rows(self, name: str) -> Rows:
        """The same with all rows, however long reading them takes."""
        with damage(f"run '{name}'"):
            return read_rows(self.folder(name) / ROLLOUTS)

    def at_hand(self, name: str) -> bool:
        """Whether the rows of a run take no time; a stored index is loaded for the next look."""
        with damage(f"run '{name}'"):
            return at_hand(self.folder(name) / ROLLOUTS)

    def number(self, name: str, row: str) -> int:
        """The number of the row with that id."""
        for rows in (self.rows, self.all_rows):
            if (number := rows(name).numbers.get(row)) is not None:
                return number
        raise WorkbenchError(f"run '{name}' has no row '{row[:80]}': choose one of its list")

    def row(self, name: str, number: int) -> Series:
        """The columns of the row with that number, which counts from 0.

        Raises:
            WorkbenchError: there is no such row.
        """
        rows = self.rows(name)
        if not 0 <= number < rows.total:
            raise WorkbenchError(
                f"run '{name}' has the rows 1 to {rows.total}: there is no row {number + 1}"
            )
        return (rows if number >= rows.missing else self.all_rows(name)).row(number)

    def feedback(self, name: str, number: int, rows: Rows | None = None) -> Feedback:
        """The feedback of the row with that number, of `rows` if they are at hand."""
        with damage(f"row {number + 1} of run '{name}'"):
            known = self.row(name, number) if rows is None else rows.table.loc[number]
            line = line_at(self.folder(name) / ROLLOUTS, known["offset"])
            row = json.loads(line, parse_constant=_not_a_number)
            if str(row.get("id", known["id"])) != known["id"]:
                raise ValueError("its index names another row: remove rollouts.index.parquet")
            question = self.question(name, str(row.get("question_id")))
            return Feedback.from_row(row, question)

    def group(self, name: str, number: int) -> list[Feedback]:
        """The responses to the same prompt, this one among them; only this one if the row names
        no group.

        Empty if one of them is damaged or not all rows are read: advantages over the rest would
        be other numbers.
        """
        rows = self.rows(name)
        if rows.missing:
            return []
        group = rows.row(number)["group"]
        members = rows.table.index[rows.table["group"] == group] if group else [number]
        try:
            return [self.feedback(name, member, rows) for member in members[:64]]
        except WorkbenchError:
            return []

    def policy(self, name: str) -> Path | None:
        """The run's folder where it holds a trained policy, all of it below the runs folder;
        None where it holds none.
        """
        folder = self.folder(name)
        policy = folder / "policy"
        present = policy.is_dir() and not any(
            leads_out(path, self.root) for path in (policy, *policy.iterdir())
        )
        return folder if present else None

    def question(self, name: str, asked: str) -> Question:
        """The question of that id with its passages; without a text where the run has not stored
        it.
        """
        folder = self.folder(name)
        row = self._stored(folder / QUESTIONS, asked)
        if row is None:
            return Question(asked, "")
        stored = {item["id"]: self.passage(name, item["id"]) for item in row["passages"]}
        return question_from_row(row, {key: passage for key, passage in stored.items() if passage})

    def asked(self, name: str) -> dict[str, Asked]:
        """What lists show of each of the run's questions, by id; {} if they are not stored."""
        path = self.folder(name) / QUESTIONS
        with damage(f"run '{name}': {QUESTIONS}"):
            return _asked.read(path) if _is_own_file(path) else {}

    def lines(self, name: str, offsets: Iterable[int]) -> Iterator[bytes]:
        """The stored lines that begin at these bytes."""
        with damage(f"run '{name}'"), (self.folder(name) / ROLLOUTS).open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                yield file.readline()

    def stamp(self, name: str) -> list[int]:
        """Values that change with the run's files, with its being trained, and once its rows are
        at hand."""
        with damage(f"run '{name}'"):
            folder = self.folder(name)
            files = [
                folder / file
                for file in (ROLLOUTS, METRICS, "summary.json")
                if (folder / file).is_file()
            ]
            stats = [file.stat() for file in files]
            looks = [number for stat in stats for number in (stat.st_size, stat.st_mtime_ns)]
            return [*looks, self.in_use(name), self.at_hand(name)]

    def in_use(self, name: str) -> bool:
        """Whether a process is training the run; one that is killed leaves it as it was, and its
        lock free.
        """
        folder = self.folder(name)
        return _is_own_file(folder / ".lock") and in_use(folder)

    def passage(self, name: str, asked: str) -> Passage | None:
        """A passage of the run's questions, or one that was retrieved for a claim, by its id."""
        row = self._stored(self.folder(name) / PASSAGES, asked)
        return None if row is None else Passage(row["id"], row["title"], row["text"])

    def metrics(self, name: str) -> Sequence[Mapping[str, Any]]:
        """The rows of metrics.jsonl; none where the run was not trained. A file that has not
        changed is read once.
        """
        path = self.folder(name) / METRICS
        with damage(f"run '{name}': {path.name}"):
            return _metrics.read(path) if _is_own_file(path) else ()

    def described(self, name: str, file: str) -> dict[str, Any]:
        """The object in a JSON file of the run ("config.json", "summary.json"), or nothing where
        there is no such file.
        """
        path = self.folder(name) / file
        with damage(f"run '{name}': {file}"):
            content = json.loads(path.read_text(encoding="utf-8")) if _is_own_file(path) else {}
            if not isinstance(content, dict):
                raise ValueError(f"a {type(content).__name__} where an object should be")
            return content

    def settings(self, name: str) -> dict[str, dict[str, Any]]:
        """By method, the settings that the run was trained or scored with, as far as they are
        stored.
        """
        trained = self.described(name, "config.json")
        scored = self.described(name, settings_path(Path(ROLLOUTS)).name)
        by_method = dict(scored.get("config", {}))
        if "method" in trained:
            by_method[trained["method"]] = trained.get("config", {})
        for method, config in by_method.items():
            if not isinstance(config, dict):
                raise WorkbenchError(
                    f"run '{name}' is damaged: its settings of {method} are not an object: fix the"
                    " file, or move the run away"
                )
        return by_method

    def _stored(self, path: Path, name: str) -> Any:
        """The row of that id in a file of questions or passages, if there is one.

        Raises:
            WorkbenchError: the file is a link out of the folder.
        """
        check_inside(path)
        offset = _offsets.read(path).get(name) if path.is_file() else None
        if offset is None:
            return None
        return json.loads(line_at(path, offset), parse_constant=_not_a_number)

    def _walk(self, folder: Path, depth: int) -> Iterator[Path]:
        try:
            if depth > DEPTH or not folder.is_dir():
                return
            if depth and _is_run(folder):
                yield folder
                return
            inside = list(folder.iterdir())
        except OSError:  # a folder that may not be read, or that has just been removed
            return
        for below in inside:
            hidden = below.name in INSIDE or below.name.startswith(".")
            if not hidden and below.is_dir() and not below.is_symlink():
                yield from self._walk(below, depth + 1)


def _is_run(folder: Path) -> bool:
    return _is_own_file(folder / ROLLOUTS)


def _is_own_file(path: Path) -> bool:
    """Whether there is a file, and not a link to one."""
    return path.is_file() and not path.is_symlink()


def _add_offsets(offsets: dict[str, int], offset: int, lines: list[bytes]) -> dict[str, int]:
    """Add where the row of each id begins; lines without an id are passed over."""
    for line in lines:
        head = _ID.match(line)
        with contextlib.suppress(ValueError, KeyError):
            offsets[json.loads(head.group(1)) if head else str(parse_object(line)["id"])] = offset
        offset += len(line)
    return offsets


def _is_text(name: str) -> bool:
    """Whether a folder's name can be sent to the page and come back from it: bytes that are not
    UTF-8 cannot.
    """
    return not re.search("[\ud800-\udfff]", name)


def _not_a_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _add_asked(asked: dict[str, Asked], offset: int, lines: list[bytes]) -> dict[str, Asked]:
    for row in map(parse_object, lines):
        meta = row.get("meta")
        tier = meta.get("tier") if isinstance(meta, dict) else None
        texts = (row.get("text"), row.get("kind"), tier)
        asked[str(row.get("id"))] = Asked(*(one if isinstance(one, str) else "" for one in texts))
    return asked


_asked: Growing[dict[str, Asked]] = Growing(dict, _add_asked)
_offsets: Growing[dict[str, int]] = Growing(dict, _add_offsets)
_metrics: Growing[list[dict[str, Any]]] = Growing(list, add_objects, cached_files=64)
