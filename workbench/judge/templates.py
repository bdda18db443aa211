"""Render the prompts of judges: one template per task.

Each text to be judged is escaped and put into an XML element, so that it is not read as an
instruction.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from workbench.types import Passage, Prompt, WorkbenchError

FOLDER = Path(__file__).with_name("prompts")

# task -> names of its inputs, in the order in the prompt; a "?" marks an optional input
TASKS = {
    "extract": ("question", "response"),
    "single_pass": ("question", "passages?", "response"),
    "verify": ("question", "passages", "claims"),
    "inform": ("question", "response", "claims"),
    "outcome": ("question", "answers", "response"),
    "checklist": ("question", "response", "items"),
    "reasoning": ("question", "answers?", "response"),
    "prefer": ("question", "responses"),
    "coherence": ("question", "response"),
    "helpfulness": ("question", "response"),
    "outline": ("question", "passages"),
    "expand": ("question", "passages", "outline"),
}
# input that is a list of texts -> tag of the element of each text
TAGS = {"responses": "response", "claims": "claim", "items": "item", "answers": "answer"}
# the heading of every template's description of the reply; it comes after the data
REPLY = "\n## Reply\n"
DATA = "\n## Data\n"

# Characters that are escaped, reversibly:
# - markup, and the turn marks of chat templates, such as [INST]
# - control characters and line separators, at which a server may stop or split
# - halves of surrogate pairs, which have no encoding
# - invisible characters that a model can read: Unicode's default-ignorable characters (zero-width,
#   direction, variation selectors, tags) and annotations
_IGNORABLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SPECIAL = re.compile(
    rf"[&<>\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_IGNORABLE}]|\[(?=/?[A-Z_]+\])"
)
# A Markdown heading: the "#"s at the start of a line, or the first character of a line of "=" or
# "-" below it.
_HEADING = re.compile(
    r"^((?:&(?:[a-z]+|#x[0-9A-F]+);|[^\w\n#&])*)(#+)|^([ \t]*)([=-])(?=[=-]*[ \t]*$)", re.M
)
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_REFERENCE = re.compile(r"&(?:(amp|lt|gt)|#x([0-9A-F]+));")
_TAG = re.compile(r"<(/?)([a-z]+)>")


@dataclass(frozen=True)
class Element:
    """One XML element of a prompt, with its unescaped text and its child elements."""

    tag: str
    text: str
    children: "tuple[Element, ...]" = ()


def render(task: str, **inputs: Any) -> Prompt:
    """Return the prompt for a task of the judge, such as "verify", from `prompts/<task>.md`.

    `TASKS` lists the arguments of each task, such as `question` and `response` for "extract":

    * An argument with a plural name is a list of texts. Every other argument is one text.
    * An optional argument may be None.
    * A passage is a text or a `Passage`. The title of a `Passage` is put into the element
      `<title>`.

    Each text is escaped and put into its own element, such as `<question>`, `<claim>` or
    `<passage>`. `elements` reads the texts back from the prompt.

    Raises:
        WorkbenchError: an argument is missing or does not belong to the task, or a list has the
            wrong length.
    """
    texts = {name: value for name, value in inputs.items() if value is not None}
    _check(task, set(texts))
    names = [name.rstrip("?") for name in TASKS[task] if name.rstrip("?") in texts]
    data = "\n".join(block for name in names for block in _blocks(task, name, texts[name]))
    return Prompt(task, _template(task).substitute(data=data))


def elements(text: str) -> "tuple[Element, ...]":
    """Return the outermost XML elements of a rendered prompt, in order, with unescaped texts.

    Raises:
        ValueError: the tags do not match, so `render` did not write this prompt.
    """
    stack: list[tuple[str, list[str], list[Element]]] = [("", [], [])]
    after = 0
    for tag in _TAG.finditer(text):
        stack[-1][1].append(text[after : tag.start()])
        after = tag.end()
        if not tag[1]:
            stack.append((tag[2], [], []))
            continue
        name, pieces, children = stack.pop()
        if name != tag[2] or not stack:
            raise ValueError(f"unexpected </{tag[2]}> in a prompt")
        stack[-1][2].append(Element(name, _unescape("".join(pieces)), tuple(children)))
    if len(stack) != 1:
        raise ValueError(f"<{stack[-1][0]}> is not closed in a prompt")
    return tuple(stack[0][2])


def count(prompt: Prompt) -> int | None:
    """Return how many ratings or labels a reply must have, or how many passages it may cite.

    This is the argument `count` of `workbench.judge.wire.read`. It depends on the prompt's task:

    * "inform": the number of claims; the reply must have a rating for each
    * "checklist": the number of items; the reply must have a label for each
    * "outline", "expand": the number of passages, which the reply cites as 1, 2, …
    * other tasks: None
    """
    tag = {
        "inform": "<claim>",
        "checklist": "<item>",
        "outline": "<passage>",
        "expand": "<passage>",
    }.get(prompt.task)
    return prompt.text.count(tag) if tag else None


def fingerprint() -> str:
    """Return a digest of all templates. Verdicts from different templates are not comparable."""
    return hashlib.sha256(
        "\0".join(f"{task}\0{_template(task).template}" for task in TASKS).encode()
    ).hexdigest()[:16]


def _check(task: str, names: set[str]) -> None:
    if task not in TASKS:
        raise WorkbenchError(f"no judge task '{task}': choose one of {', '.join(TASKS)}")
    allowed = {name.rstrip("?") for name in TASKS[task]}
    needed = {name for name in TASKS[task] if not name.endswith("?")}
    if not needed <= names <= allowed:
        raise WorkbenchError(
            f"a prompt for '{task}' takes {', '.join(TASKS[task])} (? = optional), not"
            f" {', '.join(sorted(names))}"
        )


def _blocks(task: str, name: str, value: Any) -> list[str]:
    """Return the XML elements, as text, for one argument of `render`."""
    if name == "passages":
        return [_materials(value)]
    if name not in TAGS:
        return [_element(name, value)]
    if isinstance(value, str):
        raise WorkbenchError(
            f"a prompt for '{task}' takes {name} as a list of texts, not one text: write [TEXT]"
        )
    size = {"responses": 2, "claims": 1 if task == "verify" else None}.get(name)
    if len(value) != size if size else not value and name != "answers":
        raise WorkbenchError(
            f"a prompt for '{task}' takes a list {name} of length {size or 'at least 1'}, not"
            f" {len(value)}"
        )
    return [_element(TAGS[name], text) for text in value]


def _materials(passages: Sequence[Passage | str]) -> str:
    blocks = ["<materials>"]
    for passage in passages:
        title, text = ("", passage) if isinstance(passage, str) else (passage.title, passage.text)
        blocks.append(
            f"<passage>{_element('title', title) if title else ''}{_escape(text)}</passage>"
        )
    return "\n".join([*blocks, "</materials>"])


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{_escape(text)}</{tag}>"


def _escape(text: str) -> str:
    visible = _SPECIAL.sub(lambda match: _NAMED.get(match[0]) or _code(match[0]), text)
    return _HEADING.sub(
        lambda match: (match[1] or match[3] or "") + _code(match[2] or match[4]), visible
    )


def _code(characters: str) -> str:
    """Return characters as numeric character references: "#" → "&#x23;"."""
    return "".join(f"&#x{ord(character):X};" for character in characters)


def _unescape(text: str) -> str:
    names = {"amp": "&", "lt": "<", "gt": ">"}
    return _REFERENCE.sub(lambda match: names.get(match[1]) or chr(int(match[2], 16)), text)


@cache
def _template(task: str) -> Template:
    return Template((FOLDER / f"{task}.md").read_text(encoding="utf-8"))
