"""What a judge may reply, read strictly: the declared value in the declared place, or a
`Failure`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from workbench.answers.outline import MOST_POINTS, STRUCTURES, Outline, Point, citations, formed
from workbench.judge.prompts import TASKS, count, with_reply
from workbench.types import (
    CLAIM_LABELS,
    ITEM_LABELS,
    OUTCOMES,
    PREFERENCES,
    REASONING,
    Failure,
    Prompt,
    WorkbenchError,
)

LABELS = {
    "single_pass": CLAIM_LABELS,
    "verify": ("correct", "vague", "wrong"),  # whether a claim is hedged is told by its words
    "outcome": OUTCOMES,
    "checklist": ITEM_LABELS,
    "reasoning": REASONING,
    "prefer": PREFERENCES,
    "outline": STRUCTURES,
}
RATINGS = range(1, 6)
LONGEST = 200_000  # characters; no honest reply comes near
RAW = 2_000  # characters of a reply that its failure keeps

Form = Literal["json", "line"]

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.S | re.I)
_LINE = re.compile(r"([A-Z]+):[ \t]*([^\r\n]*)", re.I)
_THINK = re.compile(r"<(/?)think>")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _Unreadable(Exception):
    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def read(task: str, text: str, count: int | None = None, form: Form = "json") -> Any:
    """Read one reply.

    Args:
        count: how many labels ("checklist") or ratings ("inform") there have to be, or how many
        passages there are to name
            ("outline", "expand"); None accepts any number.
        form: "json", or "line" for judges that cannot write JSON: one line `LABEL: …`, `LABELS:
        …, …` or `RATINGS: …, …`.

    Returns:
        a `Failure` of stage "parse"; or for "extract", "single_pass" and "outline" the object,
        for "checklist" a list of
        labels, for "inform" a list of whole numbers 1–5, for "expand" the text of the answer,
        for all others a label.

    A reasoning judge's thoughts may stand before the value, from the <think> that the reply
    begins with to its </think>. Around the JSON object may be white space and one code fence,
    nothing else. Keys are exact. A label is one of `LABELS` of its task, in any case ("Correct"
    is `correct`, but "Incorrect" is no label of "verify"), with nothing around it. Kinds of
    failure: `empty`, `too_long`, `not_json`, `extra_text`, `keys` (missing, unknown, twice),
    `type`, `length`, `label`, `blank` (a sentence or claim without a letter or figure),
    `characters` (half a surrogate pair), `form` (what could not be read back from a planned
    answer).
    """
    assert task in TASKS, task
    try:
        if len(text) > LONGEST:
            raise _Unreadable(
                "too_long", f"the reply has {len(text):,} characters, more than {LONGEST:,}"
            )
        if not (reply := _without_thoughts(text.strip())):
            raise _Unreadable("empty", "the reply is empty")
        value = _from_line(task, reply) if form == "line" else _from_json(reply)
        return _READERS[task](value, task, count)
    except _Unreadable as error:
        return Failure("parse", error.kind, f"{task}: {error}", clip(text))


def checked_reply(prompt: Prompt, text: str, form: Form = "json") -> str | Failure:
    """A reply to `prompt` as canonical JSON that `read` accepts; or why not. What has no task of
    ours is only not empty.
    """
    if prompt.task not in TASKS:
        return (
            text
            if text.strip()
            else Failure("parse", "empty", f"{prompt.task}: the reply is empty")
        )
    value = read(prompt.task, text, count(prompt), form)
    if isinstance(value, Failure) or form == "json":
        return value if isinstance(value, Failure) else text
    return json.dumps({_key(prompt.task): value})


def in_form(prompt: Prompt, form: Form) -> Prompt:
    """The prompt with the reply described in this form; the templates describe JSON.

    Raises:
        WorkbenchError: the task's reply does not fit on a line.
    """
    if form == "json" or prompt.task not in TASKS:
        return prompt
    key, listed = _key(prompt.task), ""
    value = "a whole number from 1 to 5"
    if key != "ratings":
        value = f"one of {', '.join(LABELS[prompt.task])}"
    if key != "label":
        listed = f" for each of them in their order, {count(prompt)} in all, with commas between"
    return with_reply(
        prompt,
        f"One line and nothing else: the word {key.upper()}, a colon, and {value}{listed}:\n\n"
        f"{key.upper()}: …{', …' if listed else ''}",
    )


def clip(text: str) -> str:
    """The beginning of a reply, fit to be stored."""
    return _SURROGATE.sub("\ufffd", text[:RAW])


def _key(task: str) -> str:
    if task in ("extract", "single_pass", "outline", "expand"):
        raise WorkbenchError(
            f"a reply to '{task}' does not fit on one line: use form='json' for it"
        )
    return {"inform": "ratings", "checklist": "labels"}.get(task, "label")


def _without_thoughts(text: str) -> str:
    """What follows the thoughts that a reply begins with. They may quote whole blocks: as many
    tags are closed as were opened. A lone </think> that they quote ends them, and then the rest
    of the thoughts is text that no form allows."""
    if not text.startswith("<think>"):
        return text
    depth = 0
    for tag in _THINK.finditer(text):
        depth += -1 if tag[1] else 1
        if not depth:
            return text[tag.end() :].strip()
    raise _Unreadable(
        "extra_text",
        "the reply begins with <think> and does not end its thoughts: allow it more tokens",
    )


def _from_json(text: str) -> Any:
    if fence := _FENCE.fullmatch(text):
        text = fence[1].strip()
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise _Unreadable("not_json", "the reply is nested too deeply") from None
    except ValueError as error:
        if not text.startswith("{") and "{" in text:
            raise _Unreadable(
                "extra_text", f"the reply starts with other text: {text[:80]!r}"
            ) from None
        raise _Unreadable("not_json", f"the reply is not JSON: {error}"[:200]) from None
    if end != len(text):
        raise _Unreadable(
            "extra_text", f"the reply goes on after its JSON: {text[end : end + 80]!r}"
        )
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _Unreadable("keys", "the reply has a key twice")
    return dict(pairs)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _from_line(task: str, line: str) -> Any:
    key = _key(task)
    match = _LINE.fullmatch(line)
    if not match or match[1].lower() != key:
        raise _Unreadable("not_line", f"the reply is not one line '{key.upper()}: …'")
    if key == "label":
        return {key: match[2]}
    values: list[Any] = [word.strip(" \t") for word in match[2].split(",")]
    if key == "ratings":
        values = [int(word) if re.fullmatch("[0-9]", word) else word for word in values]
    return {key: values}


def _labelled(value: Any, task: str, expected: int | None) -> str:
    return _label(_fields(value, "label")["label"], task)


def _labels(value: Any, task: str, expected: int | None) -> list[str]:
    return [_label(one, task) for one in _list(_fields(value, "labels"), "labels", expected)]


def _ratings(value: Any, task: str, expected: int | None) -> list[int]:
    return [_rating(one) for one in _list(_fields(value, "ratings"), "ratings", expected)]


def _sentences(value: Any, task: str, expected: int | None) -> dict[str, Any]:
    sentences = []
    for item in _list(_fields(value, "sentences"), "sentences"):
        fields = _fields(item, "text", "claims")
        claims = [_claim(claim, task) for claim in _list(fields, "claims")]
        sentences.append({"text": _text(fields["text"]), "claims": claims})
    return {"sentences": sentences}


def _claim(value: Any, task: str) -> Any:
    if task == "extract":
        return _text(value)
    fields = _fields(value, "text", "label", "informativeness")
    return {
        "text": _text(fields["text"]),
        "label": _label(fields["label"], task),
        "informativeness": _rating(fields["informativeness"]),
    }


def _outline(value: Any, task: str, passages: int | None) -> dict[str, Any]:
    fields = _fields(value, "structure", "points")
    points: list[dict[str, Any]] = []
    listed = _list(fields, "points")
    if not 1 <= len(listed) <= MOST_POINTS:
        raise _Unreadable("length", f"an outline has 1 to {MOST_POINTS} points, not {len(listed)}")
    structure = _label(fields["structure"], task)
    for item in listed:
        point = _fields(item, "text", "passage")
        number = point["passage"]
        if type(number) is not int:
            raise _Unreadable(
                "type", f"a passage's number has to be a whole number, not {type(number).__name__}"
            )
        text = " ".join(_text(point["text"]).split())
        points.append({"text": text, "passage": _passage(number, passages)})
    planned = tuple(Point(point["text"], point["passage"]) for point in points)
    _check_formed(Outline(structure, planned, "…"))
    return {"structure": structure, "points": points}


def _answer(value: Any, task: str, passages: int | None) -> str:
    text = _text(_fields(value, "answer")["answer"]).strip()
    _check_formed(Outline(STRUCTURES[0], (Point("…"),), text))
    for number in citations(text):
        _passage(number, passages)
    return text


def _check_formed(outline: Outline) -> None:
    if not formed(outline):
        raise _Unreadable(
            "form",
            "a part holds a mark of the form, [Answer] or a tag or a point's number: it would be"
            " read otherwise",
        )


def _passage(number: int, passages: int | None) -> int:
    if number < 1 or (passages is not None and number > passages):
        raise _Unreadable(
            "label",
            f"there is no passage {str(number)[:20]}: they are counted from 1 to"
            f" {passages or 'the last'}",
        )
    return number


def _fields(value: Any, *names: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Unreadable(
            "type", f"a JSON object with {', '.join(names)} is expected, not {type(value).__name__}"
        )
    if set(value) != set(names):
        raise _Unreadable(
            "keys",
            f"the keys have to be {', '.join(names)}, not {', '.join(map(repr, value)) or 'none'}"[
                :200
            ],
        )
    return value


def _list(fields: Mapping[str, Any], name: str, expected: int | None = None) -> Sequence[Any]:
    value = fields[name]
    if not isinstance(value, list):
        raise _Unreadable("type", f"'{name}' has to be a list, not {type(value).__name__}")
    if expected is not None and len(value) != expected:
        raise _Unreadable("length", f"'{name}' has to have {expected} entries, not {len(value)}")
    return value


def _label(value: Any, task: str) -> str:
    if not isinstance(value, str):
        raise _Unreadable("type", f"a label has to be a string, not {type(value).__name__}")
    if (label := value.lower()) not in LABELS[task]:
        raise _Unreadable(
            "label", f"no label '{clip(value[:80])}': there are {', '.join(LABELS[task])}"
        )
    return label


def _rating(value: Any) -> int:
    if type(value) is not int:  # a bool is an int to isinstance
        raise _Unreadable("type", f"a rating has to be a whole number, not {type(value).__name__}")
    if value not in RATINGS:
        raise _Unreadable(
            "label", f"a rating is from {RATINGS[0]} to {RATINGS[-1]}, not {str(value)[:80]}"
        )
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unreadable("type", f"a text has to be a string, not {type(value).__name__}")
    if _SURROGATE.search(value):
        raise _Unreadable("characters", "a text has half a surrogate pair, which is no character")
    if not any(map(str.isalnum, value)):
        raise _Unreadable(
            "blank", f"a sentence or claim without a letter or figure: {value[:80]!r}"
        )
    return value


_READERS: dict[str, Callable[[Any, str, int | None], Any]] = {
    "extract": _sentences,
    "single_pass": _sentences,
    "checklist": _labels,
    "inform": _ratings,
    "outline": _outline,
    "expand": _answer,
    **dict.fromkeys(("verify", "outcome", "reasoning", "prefer"), _labelled),
}
