"""Convert a row of any shape to questions and passages, for all commands and readers."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping

from workbench.types import JsonMapping, Passage, Question

YES_NO = ("yes", "no")


def strings(value: object) -> tuple[str, ...]:
    """Return the texts of a list, a single value, or a list written as text.

    Empty texts and duplicates are dropped. For an object (SQuAD's answers on the hub), the texts
    under "text" are returned.

    Raises ValueError if an item is an object or a list.
    """
    if isinstance(value, Mapping):
        value = value.get("text")
    if value is None or (isinstance(value, float) and value != value):  # NaN: an empty cell
        return ()
    if isinstance(value, str):
        value = _listed(value.strip(), str, int, float)
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    if nested := [item for item in items if isinstance(item, Mapping | list)]:
        raise ValueError(f"expected texts, found {type(nested[0]).__name__}")
    return tuple(
        dict.fromkeys(text for item in items if item is not None and (text := str(item).strip()))
    )


def _listed(text: str, *kinds: type) -> object:
    """Parse a list of `kinds` that is written as text; return the text if it is not one."""
    if not (text.startswith("[") and text.endswith("]")):
        return text
    for parse in (json.loads, ast.literal_eval):  # pandas prints lists in Python's syntax
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list) and all(isinstance(item, kinds) for item in value):
            return value
    return text


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal; lone surrogates are allowed, as in JSON."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def passage_id(title: str, text: str) -> str:
    """Return an id derived from the content: equal only for equal title and text."""
    # JSON separates title and text without ambiguity
    return f"p-{digest(json.dumps([title, text]))[:12]}"


def passage(value: object, title: str = "") -> Passage:
    """Convert a text or an object `{title?, text}` (or `content`) to a passage.

    Its id is derived from the content, because the ids of different rows often collide (0, 1, 2).

    Raises ValueError for another form.
    """
    if isinstance(value, Mapping):
        title = value.get("title") or ""
        value = value.get("text", value.get("content"))
    if not isinstance(value, str) or not isinstance(title, str | int):  # "1984" may be read as int
        raise ValueError('a passage is neither a text nor {"title", "text"}')
    title, text = str(title).strip(), value.strip()
    return Passage(passage_id(title, text), title, text)


def passages(value: object) -> tuple[Passage, ...]:
    """Convert a list (also as text) or a single passage; drop duplicates."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = _listed(value.strip(), str, dict)
    if isinstance(value, str | Mapping):
        value = [value]
    if not isinstance(value, Iterable):
        raise ValueError('"passages" is not a list')
    return tuple({p.id: p for p in map(passage, value)}.values())


def question_of(record: JsonMapping, identity: str, text: object) -> Question:
    """Convert a row in the workbench's schema: `{answers?, title?, passages?, checklist?, kind?}`.

    `answer` is an alias of `answers`, a text works as a list, titles are joined by ";", and
    other fields are ignored.

    Raises ValueError that names the bad field.
    """
    kind = record.get("kind") or "single"
    if not isinstance(text, str) or not isinstance(kind, str):
        raise ValueError(f'"{"kind" if isinstance(text, str) else "question"}" is not a text')
    return Question(
        id=identity,
        text=text.strip(),
        answers=_texts(record, "answers") or _texts(record, "answer"),
        title=";".join(_texts(record, "title")),
        passages=passages(record.get("passages")),
        checklist=_texts(record, "checklist"),
        kind=kind,
    )


def _texts(record: JsonMapping, name: str) -> tuple[str, ...]:
    """Return the texts of a field; raise a ValueError if a list has only empty ones."""
    value = record.get(name)
    try:
        texts = strings(value)
    except ValueError as error:
        raise ValueError(f'"{name}": {error}') from error
    if isinstance(value, (list, tuple)) and value and not texts:
        raise ValueError(f'"{name}" has only empty texts: leave "{name}" out if there are none')
    return texts


def short_question(
    text: str,
    answers: tuple[str, ...],
    *,
    identity: object = "",
    title: str = "",
    materials: tuple[Passage, ...] = (),
    kind: str = "single",
    answerable: bool | None = None,
    meta: JsonMapping | None = None,
) -> Question:
    """Build a question with short answers by the rules of `workbench.data.sets`.

    Values of None in `meta` are dropped.
    """
    if answerable is False:
        kind, answers = "unanswerable", ()
    elif kind == "single" and answers and all(answer.lower() in YES_NO for answer in answers):
        kind = "yes_no"
    flags = {} if answerable is None else {"answerable": answerable}
    known = {**flags, **{key: value for key, value in (meta or {}).items() if value is not None}}
    name = "" if identity is None else str(identity)
    return Question(name, str(text).strip(), answers, title, materials, kind=kind, meta=known)


def plain(record: JsonMapping) -> list[Question]:
    """Read the workbench's own schema `{question, id?, …}`; see `question_of`."""
    identity = record.get("id")
    return [question_of(record, "" if identity is None else str(identity), record["question"])]
