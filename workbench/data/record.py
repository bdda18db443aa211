"""Convert a row of any shape to questions and passages, for all commands and readers."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.types import JsonMapping, Passage, Question

YES_NO = ("yes", "no")


def strings(value: Any) -> tuple[str, ...]:
    """Return texts from a list, a single value, or a list written as text; without empty ones and
    duplicates.

    From an object (SQuAD's answers on the hub), the texts under "text" are returned.
    """
    if isinstance(value, Mapping):
        value = value.get("text")
    if value is None or (isinstance(value, float) and value != value):
        return ()
    if isinstance(value, str):
        value = _listed(value.strip(), str, int, float)
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    if any(isinstance(item, Mapping | list) for item in items):
        raise ValueError(
            "expected texts, found"
            f" {type(next(i for i in items if isinstance(i, Mapping | list))).__name__}"
        )
    return tuple(
        dict.fromkeys(text for item in items if item is not None and (text := str(item).strip()))
    )


def _listed(text: str, *kinds: type) -> Any:
    """Parse a list of `kinds` that is written as text; return the text if it is not one."""
    if not (text.startswith("[") and text.endswith("]")):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list) and all(isinstance(item, kinds) for item in value):
            return value
    return text


def digest(text: str) -> str:
    """Return the SHA-256 in hexadecimal; lone surrogates, which JSON allows, are encoded as they
    are.
    """
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def passage_id(title: str, text: str) -> str:
    """Return an id derived from the content: equal only for equal title and text."""
    return f"p-{digest(json.dumps([title, text]))[:12]}"


def passage(given: Any, title: str = "") -> Passage:
    """Convert a text or an object `{title?, text}` (or `content`) to a passage.

    Its id is derived from the content, because the ids of different rows often collide (0, 1,
    2).
    """
    if isinstance(given, Mapping):
        given, title = given.get("text", given.get("content")), given.get("title") or ""
    if not isinstance(given, str) or not isinstance(title, str | int):
        raise ValueError('a passage is neither a text nor {"title", "text"}')
    title, text = str(title).strip(), given.strip()
    return Passage(passage_id(title, text), title, text)


def passages(value: Any) -> tuple[Passage, ...]:
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


def question_of(record: JsonMapping, identity: str, text: Any) -> Question:
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
    value = record.get(name)
    try:
        texts = strings(value)
    except ValueError as error:
        raise ValueError(f'"{name}": {error}') from error
    if isinstance(value, (list, tuple)) and value and not texts:
        raise ValueError(f'"{name}" has only empty texts: leave out "{name}" where there are none')
    return texts


def answered(
    text: str,
    answers: tuple[str, ...],
    *,
    identity: Any = "",
    title: str = "",
    shown: tuple[Passage, ...] = (),
    kind: str = "single",
    answerable: bool | None = None,
    meta: JsonMapping | None = None,
) -> Question:
    """Build a short question by the rules of `workbench.data.sets`; `meta` values of None are
    dropped.
    """
    if answerable is False:
        kind, answers = "unanswerable", ()
    elif kind == "single" and answers and all(answer.lower() in YES_NO for answer in answers):
        kind = "yes_no"
    flags = {} if answerable is None else {"answerable": answerable}
    known = {**flags, **{key: value for key, value in (meta or {}).items() if value is not None}}
    name = "" if identity is None else str(identity)
    return Question(name, str(text).strip(), answers, title, shown, kind=kind, meta=known)


def plain(record: JsonMapping) -> list[Question]:
    """Read the workbench's own schema: `{question, id?, …}`, see `question_of`."""
    name = record.get("id")
    return [question_of(record, "" if name is None else str(name), record["question"])]
