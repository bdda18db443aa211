"""Parse replies of judges strictly.

Each task declares the form of its reply. A reply in any other form is a `Failure`; the parser never
guesses what was meant.
"""

import json
import re
from typing import Any, NoReturn, TypeVar

from workbench.judge.templates import DATA, REPLY, TASKS, count
from workbench.text.outline import MOST_POINTS, STRUCTURES, Outline, Point, citations, formed
from workbench.types import (
    CLAIM_LABELS,
    ITEM_LABELS,
    OUTCOMES,
    PREFERENCES,
    REASONING,
    Failure,
    JsonMapping,
    JsonObject,
    Prompt,
    Reply,
)
from workbench.util.jsonl import encodable, unique_keys

# tasks whose label is a mark, and the possible marks
MARKED, MARKS = ("coherence", "helpfulness"), ("1", "2", "3", "4", "5")
LABELS = {
    "single_pass": CLAIM_LABELS,
    "verify": ("correct", "vague", "wrong"),  # rules find hedged claims
    "outcome": OUTCOMES,
    "checklist": ITEM_LABELS,
    "reasoning": REASONING,
    "prefer": PREFERENCES,
    **dict.fromkeys(MARKED, MARKS),
    "outline": STRUCTURES,
}
# tasks whose reply is one label
ONE_LABEL = ("verify", "outcome", "reasoning", "prefer", *MARKED)
RATINGS = range(1, 6)
REPLY_CHARACTERS = 200_000  # characters of a reply, far more than a valid one has
RAW = 2_000  # characters of a reply that its failure stores
MORE_TOKENS = "allow longer replies with --judge-tokens N (max_new_tokens in Python)"

Kind = TypeVar("Kind")

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.S | re.I)
# tags of thoughts: <think>, [THINK], ◁think▷, <seed:think>, …
_TAG = r"[<\[◁]{slash}(?:\w{{1,20}}:)?{name}[>\]▷]"
_NAME = "(think|thinking|thought|reasoning)"
_THOUGHTS = re.compile(_TAG.format(slash="", name=_NAME), re.I)
# gpt-oss: thoughts in one channel, the reply in another; a server may have removed the marks
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?(?:<\|channel\|>|analysis)")
_FINAL = re.compile(
    r"(?:^|<\|channel\|>|assistant)final *(?:<\|constrain\|>)?(?:json)?(?:<\|message\|>)?"
)


class _Unreadable(Exception):
    """Raised if a reply cannot be parsed; `kind` becomes the kind of the `Failure`."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def read(task: str, text: str, count: int | None = None, constrained: bool = False) -> Any:
    """Parse a judge's reply; return its value, or a `Failure` if it cannot be parsed.

    Args:
        task: a key of `workbench.judge.templates.TASKS`.
        text: the whole reply of the model.
        count: number of labels ("checklist") or ratings ("inform") that the reply must have, or
            number of passages that it may cite ("outline", "expand"); None accepts any number.
        constrained: if True, a reply with a single label is a JSON string, such as "correct",
            instead of the object {"label": "correct"}.

    Returns:
        A `Failure` of stage "parse", or the value:

        * "extract": {"sentences": [{"text", "claims": [text, …]}, …]}
        * "single_pass": like "extract", but a claim is {"text", "label", "informativeness"}
        * "outline": {"structure", "points": [{"text", "passage": number from 1}, …]}
        * "checklist": a list of labels
        * "inform": a list of whole numbers from 1 to 5
        * "expand": the text of the answer
        * other tasks: a label

    The reply must be a JSON object with exactly the declared keys. White space and one code fence
    may surround the object. A label is one of the task's `LABELS`, in upper or lower case.

    Before the object, the reply may contain the model's thinking. It is in tags such as
    <think>…</think> or [THINK]…[/THINK] (the opening tag may be missing), or in a channel of
    gpt-oss.

    Kinds of failure:

    * `empty`, `too_long`, `not_json`, `extra_text`, `type`, `length`, `label`
    * `keys`: missing, unknown or repeated keys
    * `blank`: a sentence or claim without a letter or digit
    * `characters`: half a surrogate pair
    * `form`: a point or an answer that contains markup of an outline, such as [Answer]
    """
    assert task in TASKS, task
    try:
        if len(text) > REPLY_CHARACTERS:
            raise _Unreadable(
                "too_long",
                f"the reply has {len(text):,} characters, more than {REPLY_CHARACTERS:,}",
            )
        if not (reply := _without_thoughts(text.strip())):
            raise _Unreadable("empty", "the reply is empty")
        reply_value = _from_json(reply)
        if constrained and task in ONE_LABEL:
            reply_value = {"label": reply_value}
        value = _shaped(reply_value, _SHAPES[task], task, count)
        if task == "outline":
            return _planned(value)
        # all other replies are objects with one key, whose value is returned
        return value if "sentences" in value else next(iter(value.values()))
    except _Unreadable as error:
        return Failure("parse", error.kind, f"{task}: {error}", clip(text))


def read_reply(task: str, reply: Reply, count: int | None = None) -> Any:
    """Parse a judge's reply as `read` does; return its value or a `Failure`.

    If the call of the judge failed, the result is the `Failure` of the call. See `read` for `task`,
    `count` and the value.
    """
    return reply.error or read(task, reply.text or "", count)


def bare_label(prompt: Prompt) -> Prompt:
    """Return a prompt that asks for the label alone: "correct" instead of {"label": "correct"}.

    If the task's reply is not a single label, the prompt is returned unchanged.
    """
    if prompt.task not in ONE_LABEL:
        return prompt
    # the form is described before the data, so that a server's prefix cache covers it
    head, data = prompt.text.rpartition(REPLY)[0].split(DATA)
    labels = ", ".join(map(json.dumps, LABELS[prompt.task]))
    reply = f"{REPLY}\nWrite one of these JSON strings and nothing else: {labels}\n"
    return Prompt(prompt.task, f"{head}{reply}{DATA}{data.rstrip()}\n")


def schema(prompt: Prompt) -> JsonObject:
    """Return the JSON schema to which a server constrains the reply to a prompt."""
    shape = _label if prompt.task in ONE_LABEL else _SHAPES[prompt.task]
    return _schema(shape, prompt.task, count(prompt))


def _schema(shape: Any, task: str, number: int | None) -> JsonObject:
    if isinstance(shape, dict):
        parts = {name: _schema(part, task, number) for name, part in shape.items()}
        closed = {"required": [*shape], "additionalProperties": False}
        return {"type": "object", "properties": parts, **closed}
    if isinstance(shape, list):
        least, most = {
            "checklist": (number, number),
            "inform": (number, number),
            "outline": (1, MOST_POINTS),
        }.get(task, (None, None))
        size = {"minItems": least, "maxItems": most} if most else {}
        return {"type": "array", "items": _schema(shape[0], task, number), **size}
    if shape is _label:
        return {"type": "string", "enum": [*LABELS[task]]}
    if shape is _text or shape is _answer:
        return {"type": "string"}
    numbers = RATINGS if shape is _rating else range(1, (number or 0) + 1)
    return {"type": "integer", "enum": [*numbers]}


def clip(text: str) -> str:
    """Return the first 2,000 characters (`RAW`) of a reply; lone surrogates become U+FFFD."""
    return encodable(text[:RAW])


def one_line(text: str) -> str:
    """Return a text on one line and without control characters, to quote it in an error message."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _without_thoughts(text: str) -> str:
    """Return a reply without the model's thinking at its beginning.

    The thinking ends where all its tags are closed, because it may quote blocks of thinking:
    `<think>… <think>…</think> …</think>reply` → `reply`. The first opening tag may be missing,
    because a chat template may end with it.
    """
    if _CHANNEL.match(text):
        if final := _FINAL.search(text):
            return re.sub(r"<\|(?:return|end)\|>$", "", text[final.end() :]).strip()
        raise _Unreadable("extra_text", f"the reply is only the model's thinking: {MORE_TOKENS}")
    opened = _THOUGHTS.match(text)
    pattern = _TAG.format(slash="(/?)", name=opened[1] if opened else _NAME)
    tags = list(re.finditer(pattern, text, re.I))
    # a reply that begins with its JSON object may quote a tag inside it
    if not opened and ([bool(tag[1]) for tag in tags] != [True] or text.startswith(("{", "```"))):
        return text
    depth = 0 if opened else 1
    for tag in tags:
        depth += -1 if tag[1] else 1
        if not depth:
            return text[tag.end() :].strip()
    raise _Unreadable("extra_text", f"the reply ends within the model's thinking: {MORE_TOKENS}")


def _from_json(text: str) -> object:
    if fence := _FENCE.fullmatch(text):
        text = fence[1].strip()
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise _Unreadable("not_json", "the reply is nested too deeply") from None
    except ValueError as error:
        if not text.startswith("{") and "{" in text:
            raise _Unreadable(
                "extra_text", f"the reply has text before its JSON object: {text[:80]!r}"
            ) from None
        raise _Unreadable("not_json", f"the reply is not JSON: {error}"[:200]) from None
    if end != len(text):
        raise _Unreadable(
            "extra_text", f"the reply has text after its JSON value: {text[end : end + 80]!r}"
        )
    return value


def _pairs(pairs: list[tuple[str, object]]) -> JsonObject:
    try:
        return unique_keys(pairs)
    except ValueError as error:  # names the repeated key
        raise _Unreadable("keys", one_line(f"{error}"[:200])) from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _shaped(value: object, shape: Any, task: str, expected: int | None) -> Any:
    """Check a value against a shape from `_SHAPES` and return it in normal form.

    A shape is a dict (an object with exactly these keys), a list with the shape of every item, or
    a function that checks one value. `expected` is the argument `count` of `read`.
    """
    if isinstance(shape, dict):
        names = ", ".join(shape)
        fields = _typed(value, dict, f"a JSON object with {names}")
        if set(fields) != set(shape):
            present = ", ".join(map(repr, fields)) or "no keys"
            raise _Unreadable("keys", f"the object's keys must be {names}; found {present}"[:200])
        return {name: _shaped(fields[name], part, task, expected) for name, part in shape.items()}
    if isinstance(shape, list):
        items = _typed(value, list, "a list")
        if task in ("checklist", "inform") and expected not in (None, len(items)):
            raise _Unreadable("length", f"the list must have {expected} entries, not {len(items)}")
        return [_shaped(item, shape[0], task, expected) for item in items]
    return shape(value, task, expected)


def _typed(value: object, kind: type[Kind], what: str) -> Kind:
    """Return a JSON value after checking its type; `what` describes the type in the message."""
    if isinstance(value, kind) and not isinstance(value, bool):  # a bool is an int to isinstance
        return value
    raise _Unreadable("type", f"{what} is expected, not {type(value).__name__}")


def _planned(value: JsonMapping) -> JsonObject:
    """Return a parsed outline after checking it; runs of white space become single spaces."""
    points = [{**point, "text": " ".join(point["text"].split())} for point in value["points"]]
    if not 1 <= len(points) <= MOST_POINTS:
        raise _Unreadable("length", f"an outline has 1 to {MOST_POINTS} points, not {len(points)}")
    value = {**value, "points": points}
    _check_formed(planned_outline(value))
    return value


def planned_outline(value: JsonMapping) -> Outline:
    """Return the parsed reply to the task "outline" as an `Outline` without an answer.

    The field `answer` is the placeholder "…". The judge writes the answer in the task "expand".
    """
    points = tuple(Point(point["text"], point["passage"]) for point in value["points"])
    return Outline(value["structure"], points, "…")


def _answer(value: object, task: str, passages: int | None) -> str:
    text = _text(value).strip()
    _check_formed(Outline(STRUCTURES[0], (Point("…"),), text))
    for number in citations(text):
        _passage(number, task, passages)
    return text


def _check_formed(outline: Outline) -> None:
    if not formed(outline):
        raise _Unreadable(
            "form",
            "a point or the answer contains a mark that separates the parts of a reply: [Answer], a"
            " tag or a point's number",
        )


def _passage(value: object, task: str, passages: int | None) -> int:
    number = _typed(value, int, "a whole number")
    if number < 1 or (passages is not None and number > passages):
        raise _Unreadable(
            "label",
            f"there is no passage {str(number)[:20]}: the numbers are 1 to {passages or '…'}",
        )
    return number


def _label(value: object, task: str, *_: Any) -> str:
    text = _typed(value, str, "a label, which is a string,")
    if (label := text.lower()) not in LABELS[task]:
        raise _Unreadable(
            "label", f"no label '{clip(text[:80])}': the labels are {', '.join(LABELS[task])}"
        )
    return label


def _rating(value: object, *_: Any) -> int:
    rating = _typed(value, int, "a rating, which is a whole number,")
    if rating not in RATINGS:
        raise _Unreadable(
            "label", f"a rating is from {RATINGS[0]} to {RATINGS[-1]}, not {str(rating)[:80]}"
        )
    return rating


def _text(value: object, *_: Any) -> str:
    text = _typed(value, str, "a text")
    if encodable(text) != text:
        raise _Unreadable("characters", "a text has half a surrogate pair, which is not valid")
    if not any(map(str.isalnum, text)):
        raise _Unreadable("blank", f"a sentence or claim without a letter or digit: {text[:80]!r}")
    return text


# the exact shape of the reply to each task
_SHAPES: JsonMapping = {
    "extract": {"sentences": [{"text": _text, "claims": [_text]}]},
    "single_pass": {
        "sentences": [
            {
                "text": _text,
                "claims": [{"text": _text, "label": _label, "informativeness": _rating}],
            }
        ]
    },
    "checklist": {"labels": [_label]},
    "inform": {"ratings": [_rating]},
    "outline": {"structure": _label, "points": [{"text": _text, "passage": _passage}]},
    "expand": {"answer": _answer},
    **{task: {"label": _label} for task in ONE_LABEL},
}
