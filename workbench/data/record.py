"""Convert the row of a data set to a question with passages.

The functions accept the forms in which public data sets write answers and passages.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from workbench.data.chat import text_of
from workbench.data.printed import container
from workbench.text.gold import infer_kind
from workbench.types import JsonMapping, JsonObject, Passage, Question
from workbench.util.jsonl import json_digest

# keys of an answer object: TriviaQA, SQuAD, KILT, Search-R1, verl, DROP and ASQA
ANSWER_KEYS = ("value", "text", "answer", "target", "ground_truth", "spans", "short_answers")
PASSAGE_KEYS = ("text", "content", "contents", "snippet", "passage", "paragraph_text")
# fields with lists or objects, which a table holds as text
STRUCTURED = ("claims", "verdicts", "tokens", "sentences", "rewards", "cost", "error")
TRUTH = {"true": "yes", "false": "no"}


def strings(value: object) -> tuple[str, ...]:
    """Return the distinct, non-empty texts in a field of a data set, such as a list of answers.

    The value may be a text, a number, an answer object such as `{"value": …, "aliases": […]}`, or a
    list of these. Lists and objects may be encoded as text. Numbers become texts.

    Raises:
        ValueError: an item is a list, an infinite number, or an object without a key of
            `ANSWER_KEYS`, such as "value", "text" or "answer".
    """
    return tuple(dict.fromkeys(_texts_in(container(value))))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        found = [value[name] for name in ANSWER_KEYS if value.get(name) is not None]
        # KILT also has objects with only "provenance", the evidence: these have no answer
        if value and not found and not value.keys() & {*ANSWER_KEYS, "provenance"}:
            raise ValueError(
                f"an object needs one of the keys {', '.join(ANSWER_KEYS)}; it has"
                f" {', '.join(map(str, value))}"
            )
        for item in (*found[:1], value.get("aliases")):
            yield from _texts_in(container(item))
    elif isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, list | tuple):
                raise ValueError(f"each item must be a text or a number, not a list: {item!r:.80}")
            yield from _texts_in(item)
    elif text := _text_in(value):
        yield text


def _text_in(value: Any) -> str:
    if value is ...:  # as numpy prints a long array; Python parses it as Ellipsis
        raise ValueError("a list has '...' in place of some of its items: write all of them")
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError(f"{value} is not a finite number: write it as text")
        # pandas stores whole numbers as floats if the column has gaps, and a gap as NaN
        value = None if math.isnan(value) else int(value) if value.is_integer() else value
    return "" if value is None else str(value).strip()


def whole_number(row: JsonMapping, name: str) -> int | None:
    """Return field `name` of a row as an int; None if the field is missing or empty.

    The value may be a number of any type, or a text such as "3" or "3.0". NaN counts as empty.

    Raises:
        ValueError: the value is not a whole number.
    """
    value: Any = row.get(name)
    if value is None or value == "" or value != value:  # only NaN differs from itself
        return None
    whole = re.fullmatch(r"(-?\d{1,18})(\.0*)?", str(value).strip())
    if not whole:
        raise ValueError(f'"{name}" is {value!r}, not a whole number')
    return int(whole[1])


def column(row: JsonMapping, name: str) -> object:
    """Return the value in column `name` of a row; "a.b" is the key b of the object in column a.

    A column that is itself called "a.b" takes precedence.

    Raises:
        KeyError: there is no such column.
    """
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = container(value)
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = value[part]
    return value


def cells(row: JsonMapping, columns: Mapping[str, str]) -> JsonObject:
    """Return a row of a table as an object {field: value}, without its empty cells.

    An empty "response" is kept, because a response may be empty. Lists and objects that are stored
    as text are parsed in the fields of `STRUCTURED`, such as "claims". In the fields "schema",
    "sample" and "step", a text of digits becomes an int.

    Args:
        columns: name of a field -> name of its column, such as `{"response": "output"}`. Columns
            that are not listed keep their names.
    """
    named = dict(row)
    for name, wanted in columns.items():
        named[name] = None
        with suppress(KeyError):
            named[name] = column(row, wanted)
    return {
        name: _cell(name, value)
        for name, value in named.items()
        if value is not None
        and not (isinstance(value, float) and value != value)
        and (value != "" or name == "response")
    }


def _cell(name: str, value: Any) -> Any:
    if name in ("schema", "sample", "step") and isinstance(value, str) and value.isdecimal():
        return int(value)
    return container(value) if name in STRUCTURED else value


def digest(text: str) -> str:
    """Return the SHA-256 hash of a text in hexadecimal. The text may have lone surrogates."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def passage_id(title: str, text: str) -> str:
    """Return a passage's id, "p-" and 12 digits of a hash of its title and text."""
    # JSON separates title and text without ambiguity
    return f"p-{json_digest([title, text])}"


def passage(value: object, title: object = "") -> Passage:
    """Convert a text, a list of sentences or an object `{"title": …, "text": …}` to a passage.

    The passage's id is a hash of its title and text.

    Args:
        title: the title of a text or of a list of sentences. An object has its own, optional title.

    Raises:
        ValueError: the value has another form.
    """
    if isinstance(value, Mapping):
        title = value.get("title") or ""
        value = next((value[name] for name in PASSAGE_KEYS if name in value), None)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " ".join(value)
    if not isinstance(value, str) or not isinstance(title, str | int):  # "1984" may be read as int
        raise ValueError('a passage must be a text or an object {"title": …, "text": …}')
    title, text = str(title).strip(), value.strip()
    # not the data set's own id, which often repeats in each row
    return Passage(passage_id(title, text), title, text)


def passages(value: object) -> tuple[Passage, ...]:
    """Convert a value or a list of values to passages, with `passage` for each value.

    The list may be encoded as text. None gives (). Duplicates, and passages without a letter or
    digit, are dropped.

    Raises:
        ValueError: a value has another form.
    """
    value = container(value)
    if not isinstance(value, list | tuple):
        value = [] if value is None else [value]
    return tuple({p.id: p for p in map(passage, value) if any(map(str.isalnum, p.text))}.values())


def question_of(record: JsonMapping, identity: str, text: object) -> Question:
    """Convert a row with the field names of `Question` to a question.

    The answers "true" and "false" become "yes" and "no", unless the question contains "true" or
    "false".

    Args:
        record: the row, with the optional fields `answers` (or `answer`), `title`, `passages`,
            `checklist` and `kind`. A single text as `answers` is one answer. Without a `kind`, it
            is "yes_no" if each answer is yes or no, else "single".
        identity: id of the question, or "" if it has no id.
        text: the question as a text, or a conversation whose last user message is the question.

    Raises:
        ValueError: a field has a wrong form; the message names the field.
    """
    question, kind = text_of(text, "user"), record.get("kind") or ""
    if question is None or not isinstance(kind, str):
        raise ValueError(f'"{"question" if question is None else "kind"}" is not a text')
    answers = _texts(record, "answers") or _texts(record, "answer")
    # BoolQ and others store yes and no as true and false
    if not re.search(r"\b(true|false)\b", question, re.I):
        answers = tuple(TRUTH.get(answer.lower(), answer) for answer in answers)
    return Question(
        id=identity,
        text=question.strip(),
        answers=answers,
        title=";".join(_texts(record, "title")),
        passages=passages(record.get("passages")),
        checklist=_texts(record, "checklist"),
        kind=kind or infer_kind(answers),
    )


def _texts(record: JsonMapping, name: str) -> tuple[str, ...]:
    """Return the texts of field `name`, () if it is missing.

    Raises:
        ValueError: the field has another form, or is a list of empty texts.
    """
    value = record.get(name)
    try:
        texts = strings(value)
    except ValueError as error:
        raise ValueError(f'"{name}": {error}') from error
    if isinstance(value, list | tuple) and value and not texts:
        raise ValueError(f'"{name}" has only empty texts: fill them in, or leave out "{name}"')
    return texts


def short_question(
    text: str,
    answers: tuple[str, ...],
    *,
    identity: object = "",
    title: str = "",
    materials: tuple[Passage, ...] = (),
    kind: str = "",
    answerable: bool | None = None,
    meta: JsonMapping | None = None,
) -> Question:
    """Return a question with short answers, made from the values of a data set's record.

    Args:
        answers: accepted forms of the answer; for the kind "list", the items of the list.
        identity: the question's id; None or "" if the data set has no ids.
        materials: the question's passages.
        kind: such as "numeric". "" becomes "yes_no" if each answer is yes or no, else "single".
        answerable: whether the question has an answer; None if unknown. It is stored in `meta`. If
            False, the answers are dropped and the kind is "unanswerable".
        meta: other entries of `meta`; entries with the value None are dropped.
    """
    if answerable is False:
        kind, answers = "unanswerable", ()
    known = {"answerable": answerable, **(meta or {})}
    known = {key: value for key, value in known.items() if value is not None}
    name = "" if identity is None else str(identity)
    kind = kind or infer_kind(answers)
    return Question(name, str(text).strip(), answers, title, materials, kind=kind, meta=known)


def plain(record: JsonMapping) -> list[Question]:
    """Convert a record in the workbench's own schema to a list with its one question.

    Only the field "question" is required. The fields "id", "answers", "title", "passages",
    "checklist" and "kind" are optional.
    """
    identity = record.get("id")
    return [question_of(record, "" if identity is None else str(identity), record["question"])]
