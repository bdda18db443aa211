"""What the readers share: lists that come as strings, passages in their several shapes, and the plain schema."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.types import Passage, Question

YES_NO = ("yes", "no")


def strings(value: Any) -> tuple[str, ...]:
    """Texts from a list, from one text or number, or from a list written as text ('["a", "b"]', "['a', 'b']"); no empty
    ones, none twice. Of an object (SQuAD's answers on the hub), the texts under "text"."""
    if isinstance(value, Mapping):
        value = value.get("text")
    if value is None or (isinstance(value, float) and value != value):
        return ()
    if isinstance(value, str):
        value = _listed(value.strip())
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    if any(isinstance(item, Mapping | list) for item in items):
        raise ValueError(f"expected texts, found {type(next(i for i in items if isinstance(i, Mapping | list))).__name__}")
    return tuple(dict.fromkeys(text for item in items if item is not None and (text := str(item).strip())))


def _listed(text: str) -> Any:
    """A list that is written as text, or the text."""
    if not (text.startswith("[") and text.endswith("]")):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, list) and all(isinstance(item, str | int | float) for item in found):
            return found
    return text


def digest(text: str) -> str:
    """SHA-256 in hexadecimal; half of a surrogate pair, which JSON can hold, is a character like others."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def passage(text: str, title: str = "") -> Passage:
    """A passage whose id follows from its title and text, so that one that occurs twice is stored once."""
    name = digest(f"{title}\n{text}")[:16]
    return Passage(f"p-{name}", title.strip(), text.strip())


def passages(value: Any) -> tuple[Passage, ...]:
    """Passages given as texts or as objects `{title?, text}` (or `content`); a passage that is there twice is kept once."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise ValueError(f"passages: expected a list of texts or of objects with a text, found {type(value).__name__}")
    found = []
    for item in value:
        if isinstance(item, Mapping):
            text = item["text"] if "text" in item else item["content"]
            made = passage(str(text), str(item.get("title") or ""))
            found.append(made if not item.get("id") else Passage(str(item["id"]), made.title, made.text))
        else:
            found.append(passage(str(item)))
    return tuple({p.id: p for p in found}.values())


def answered(
    text: str,
    answers: tuple[str, ...],
    *,
    identity: Any = "",
    title: str = "",
    shown: tuple[Passage, ...] = (),
    kind: str = "single",
    answerable: bool | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Question:
    """A short question by the rules of `workbench.data.sets`; a `meta` value of None is left out."""
    if answerable is False:
        kind, answers = "unanswerable", ()
    elif kind == "single" and answers and all(answer.lower() in YES_NO for answer in answers):
        kind = "yes_no"
    flags = {} if answerable is None else {"answerable": answerable}
    known = {**flags, **{key: value for key, value in (meta or {}).items() if value is not None}}
    name = "" if identity is None else str(identity)
    return Question(name, str(text).strip(), answers, title, shown, kind=kind, meta=known)


def plain(record: Mapping[str, Any]) -> list[Question]:
    """The workbench's own schema: `{question, id?, answers?, title?, passages?, checklist?, kind?}`.

    `answer` does for `answers`, a text for a list; titles in a list are joined by ";". Fields of another name stay behind.
    """
    if not isinstance(record["question"], str):
        raise ValueError("'question' must be a text")
    answers = strings(record["answers"] if record.get("answers") is not None else record.get("answer"))
    title = record.get("title")
    return [
        Question(
            id=str(record["id"]) if record.get("id") not in (None, "") else "",
            text=record["question"].strip(),
            answers=answers,
            title=";".join(strings(title)),
            passages=passages(record.get("passages")),
            checklist=strings(record.get("checklist")),
            kind=str(record.get("kind") or "single"),
        )
    ]
