"""Load questions from public data sets, by name, and from local files.

    load("nq_open", limit=100)  # from the hub
    load("SelfAware.json")  # a local file, whose schema is recognised
    load("mine.csv", mapping={"question": "prompt", "answers": "gold"})

Files may be JSONL, JSON, CSV, TSV, Parquet or text. `workbench.data.sets` lists the data sets. The
`meta` of a question has these keys:

* `source`: name of the data set; "file" for a file of another source.
* `split`: "rl", "validation" or "test", by a hash of the question's id.
* `answerable`, only if the data set labels it: whether the question has an answer. If it is False,
  abstention is correct.
* `evaluation_only`, only if True: the question must not be used for training.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from workbench.data.files import Records, read_hub, read_records
from workbench.data.record import column, digest
from workbench.data.sets import PLAIN, SETS, DataSet
from workbench.types import JsonMapping, Question, WorkbenchError

__all__ = ["NAMES", "SPLITS", "check_trainable", "data_set", "load", "sample", "split_of"]

NAMES = tuple(SETS)
SPLITS = ("rl", "validation", "test")
FIELDS = ("id", "question", "answers", "title", "passages", "checklist", "kind")


def load(
    name_or_file: str | Path,
    split: str | None = None,
    limit: int | None = None,
    mapping: Mapping[str, str] | None = None,
    *,
    schema: str | None = None,
    passages: bool = True,
    training: bool = False,
) -> list[Question]:
    """Load the questions of a data set, a file, or all files of a folder.

    Args:
        name_or_file: a name in `NAMES`, a path, or "hf:owner/name@config" for another data set of
            the hub.
        split: for a hub data set, one of its splits; None for its default. For a file, "rl",
            "validation" or "test", by a hash of the ids; None for all questions.
        limit: maximum number of questions; the first ones are returned. None for all.
        mapping: field -> name of its column, such as `{"question": "prompt"}`. The fields are in
            `FIELDS`. "a.b" is the key b of the object in column a. None if the columns have the
            names of the fields, or those of a data set in `NAMES`.
        schema: name of a data set with the same columns as the file, such as "squad_v2"; None to
            recognise it by the columns.
        passages: False drops the passages, so that the policy answers from memory.
        training: True raises an error for questions that are only for evaluation.

    Raises:
        WorkbenchError: the name or file does not exist, the hub cannot be reached, the columns do
            not fit, a row cannot be read, or an id occurs twice.
    """
    path = Path(name_or_file)
    # a folder named like a data set does not hide the data set; a file does
    local = path.is_file() or (path.is_dir() and str(name_or_file) not in SETS)
    if local and split not in (None, *SPLITS):
        raise WorkbenchError(
            f"no split '{split}' in a file: choose one of {', '.join(SPLITS)}; a hash of a"
            " question's id decides to which split the question belongs"
        )
    name = str(name_or_file)
    records, schema = (read_records(path), schema) if local else _from_hub(name, split, schema)
    if not records:
        raise WorkbenchError(f"'{name}' has no records: name another data set or file")
    # the first record decides: a data set has the same columns in all records
    source = _fitting(name, records[0][1], mapping, schema)
    questions: dict[str, Question] = {}
    for location, record in records:
        for question in _read(source, record, location, mapping):
            completed = _finish(question, source, record, known=questions, location=location)
            # on the hub, the split has already been selected
            if not local or split in (None, completed.meta["split"]):
                questions[completed.id] = completed if passages else replace(completed, passages=())
        # a file may be large: stop reading as soon as there are enough questions
        if limit is not None and len(questions) >= limit:
            break
    # one record may have several questions
    result = list(questions.values())[:limit]
    if not result:
        raise WorkbenchError(
            f"'{name}' has no questions"
            + (f" in split '{split}': name another split" if split else ": name another data set")
        )
    if training:
        check_trainable(result)
    return result


def check_trainable(questions: Iterable[Question]) -> None:
    """Check that all questions may be used for training.

    Raises:
        WorkbenchError: the `meta` of a question has `evaluation_only`.
    """
    for question in questions:
        if question.meta.get("evaluation_only"):
            raise WorkbenchError(
                f"question '{question.id}' of {question.meta.get('source', 'its data set')} is for"
                " evaluation only (its authors forbid training on it): train on another data set"
            )


def split_of(identity: str) -> str:
    """Return "rl" (80 %), "validation" (10 %) or "test" (10 %), by a hash of a question's id."""
    # by id, not by position: a question keeps its split if the file grows or is reordered
    bucket = int(digest(identity)[:8], 16) % 10
    return {8: "validation", 9: "test"}.get(bucket, "rl")


def sample(questions: Sequence[Question], n: int, seed: int = 0) -> list[Question]:
    """Return a random sample of `n` questions, or all if there are fewer, in their original order.

    The questions with the `n` smallest hashes of `seed` and id are selected. So the selection does
    not depend on the order of the questions.

    Raises:
        WorkbenchError: `n` is less than 1.
    """
    if n < 1:
        raise WorkbenchError(f"a sample must have at least 1 question (got {n})")
    order = sorted(range(len(questions)), key=lambda i: digest(f"{seed}:{questions[i].id}"))
    return [questions[i] for i in sorted(order[:n])]


def data_set(name: str) -> DataSet:
    """Return the data set called `name`; case, hyphens and underscores are ignored.

    Raises:
        WorkbenchError: there is no such data set; the message lists similar names.
    """

    def key(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.lower())

    by_key = {key(known): known for known in SETS}
    if (match := by_key.get(key(name))) is None:
        near = [by_key[close] for close in get_close_matches(key(name), by_key)]
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else f"choose one of {', '.join(NAMES)}, or name a file"
        )
        raise WorkbenchError(f"no data set and no file '{name}': {hint}")
    return SETS[match]


def _from_hub(name: str, split: str | None, schema: str | None) -> tuple[Records, str | None]:
    """Return the records of a hub data set, and the name of their schema (None if unknown)."""
    if name.startswith("hf:"):
        repository, _, config = name.removeprefix("hf:").partition("@")
        return read_hub(repository, config or None, split or "train", name=name), schema
    if re.search(r"[/\\]|\.[a-z0-9]{2,8}$", name, re.I):  # looks like a path
        raise WorkbenchError(
            f"no such file '{name}': check the path, or write hf:OWNER/NAME for a data set of the"
            " hub"
        )
    source = data_set(name)
    if not source.hub:
        raise WorkbenchError(
            f"{source.name} has no reliable copy on the hub: download it from {source.home} and"
            " pass the file"
        )
    records = read_hub(
        source.hub, source.config, split or source.split, name=source.name, file=source.file
    )
    return records, schema or source.name


def _fitting(
    location: str, record: JsonMapping, mapping: Mapping[str, str] | None, schema: str | None
) -> DataSet:
    """Return the data set whose reader can read `record`.

    This is `schema` if it is given, else the first data set that recognises the columns, else
    `PLAIN`, the workbench's own schema. With a `mapping`, it is always `PLAIN`.

    Raises:
        WorkbenchError: the columns do not fit, or `mapping` has an unknown field.
    """
    if mapping is not None:
        if unknown := [field for field in mapping if field not in FIELDS]:
            raise WorkbenchError(
                f"no field '{unknown[0]}' to map a column to: the fields are {', '.join(FIELDS)}"
            )
        if "question" not in mapping and "question" not in record:
            raise WorkbenchError(
                f"{location}: --map names no column for 'question': add question=COLUMN, where"
                f" COLUMN is one of {_columns(record)}"
            )
        return PLAIN if schema is None else replace(PLAIN, name=data_set(schema).name)
    source = (
        data_set(schema)
        if schema
        else next((s for s in SETS.values() if s.recognises(record)), PLAIN)
    )
    if not source.fits(record):
        expected = " or ".join(source.columns)
        known = "" if source is PLAIN else f" of {source.name}"
        raise WorkbenchError(
            f"{location}: not in the schema{known}: expected the columns {expected}; found"
            f" {_columns(record)}. Name your columns with --map question=COLUMN,answers=COLUMN"
        )
    return source


def _columns(record: JsonMapping) -> str:
    return ", ".join(map(str, record)) or "none"


def _read(
    source: DataSet, record: JsonMapping, location: str, mapping: Mapping[str, str] | None
) -> list[Question]:
    try:
        if mapping is not None:
            record = {
                **record,
                **{field: column(record, name) for field, name in mapping.items()},
            }
        return list(source.read(record))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"no column {error}" if isinstance(error, KeyError) else str(error)
        identity = "" if record.get("id") is None else f" (id '{record['id']}')"
        raise WorkbenchError(
            f"{location}{identity}: cannot be read as {source.name}: {reason}; its columns are"
            f" {_columns(record)}"
        ) from error


def _finish(
    question: Question,
    source: DataSet,
    record: JsonMapping,
    known: Mapping[str, Question],
    location: str,
) -> Question:
    """Return `question` with an id, and with the keys "source" and "split" in its `meta`.

    Raises:
        WorkbenchError: the question is empty, or its id is already among the `known` ids.
    """
    if not question.text.strip():
        raise WorkbenchError(
            f"{location}: the question is empty: add its text, or remove the record"
        )
    stem = identity = question.id
    if not identity:
        stem = identity = f"{source.name}-{digest(question.text)[:12]}"
        number = 1
        while identity in known:  # the same question occurs twice
            number += 1
            identity = f"{stem}-{number}"
    elif identity in known:
        raise WorkbenchError(f"{location}: id '{identity}' occurs twice: make the ids unique")
    # copies of a question are in the same split
    meta = {**question.meta, "source": source.name, "split": split_of(stem)}
    if source.evaluation_only or record.get("canary"):
        meta["evaluation_only"] = True
    return replace(question, id=identity, meta=meta)
