r"""Divide a response into thinking, plan and answer, and find its final answer.

A section is "think", "answer", or "body" for text outside of tags. These rules apply *(ours)*:

* Tags match in any case. An unclosed tag extends to the end: the response was cut off, or the
  closing tag is a stop string.
* A closing tag without an opening tag was opened by the prompt.
* A tag inside itself has no effect: `<think>a<think>b</think>c</think>` is all thinking.
* There is no answer inside `<think>`.
* In an outlined answer (FoRAG, arXiv 2406.13779, section 3.1), `[Answer]` starts the answer. The
  text after `[Structure]` and `[Outline]` is a plan, which belongs to no section.
* The content of a `\boxed{…}` with balanced braces is an answer.

`prefill` is an unclosed tag at the end of the prompt, such as "<think>\n", so that the response
begins inside it. Positions always refer to the response's own text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from workbench.types import Claim, Response
from workbench.util.patterns import regex

# "think", "answer" or "body", and the half-open character range
Section = tuple[str, int, int]

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_PLAN = "plan"
_MARKER = regex(r"<(?P<close>/?)(?P<tag>(?i:think|answer))>|\[(?P<part>Structure|Outline|Answer)\]")


@lru_cache(maxsize=1024)
def sections(text: str, prefill: str = "") -> tuple[Section, ...]:
    r"""Divide a response into sections (name, start, end), in order and disjoint.

    `start` and `end` are character positions, `end` exclusive. The names are these:

    * "think": text in `<think>`
    * "answer": text in `<answer>`, after `[Answer]`, or in a `\boxed{…}` outside of tags
    * "body": other text

    Left out are tags, markers such as `[Answer]`, plans (the text after `[Structure]` and
    `[Outline]`), and sections without content.

    Args:
        prefill: an unclosed tag at the end of the prompt, such as "<think>\n", or "".
    """
    return tuple(
        part
        for piece in _pieces(text, prefill)[0]
        if piece[0] != _PLAN
        for part in _split_boxes(text, *piece)
        if text[part[1] : part[2]].strip()
    )


def section_at(parts: Sequence[Section], position: int) -> str | None:
    """Return the name of the section at a character position: "think", "answer" or "body".

    The result is None between sections, such as in a tag or a plan.

    Args:
        parts: the sections of the text, as `sections` returns them.
        position: index of a character, from 0.
    """
    number = bisect_right(parts, position, key=lambda section: section[1]) - 1
    return parts[number][0] if number >= 0 and position < parts[number][2] else None


def answer_sections(text: str, prefill: str) -> tuple[str, ...]:
    r"""Return the names of the sections that form the answer: ("answer",) or ("answer", "body").

    * ("answer",) if an answer tag or `[Answer]` follows the thinking or, without thinking, occurs
      anywhere in the text *(ours)*.
    * ("answer", "body") otherwise, which is all text except thinking and plans. A `\boxed{…}` makes
      no difference, because the sentence around it is part of the answer.

    Args:
        prefill: an unclosed tag at the end of the prompt, such as "<think>", or "".
    """
    marked = any(state == "answer" for state, *_ in _after_thinking(_pieces(text, prefill)[0]))
    return ("answer",) if marked else ("answer", "body")


def answer_text(text: str, prefill: str = "") -> str:
    """Return the text of the answer, without the thinking and the plan.

    It is the text of the "answer" sections if an answer tag or `[Answer]` follows the thinking.
    Otherwise, it is all text except thinking and plan.

    Args:
        prefill: an unclosed tag at the end of the prompt, such as "<think>", or "".
    """
    wanted = answer_sections(text, prefill)
    parts: Sequence[Section] = (
        _pieces(text, prefill)[0] if "body" in wanted else sections(text, prefill)
    )
    return _joined(text, [part for part in parts if part[0] in wanted])


def in_answer(response: Response) -> Callable[[Claim], bool]:
    """Return a function that tells whether a claim belongs to the answer of `response`.

    The claim's section must be one of `answer_sections`. A claim that was not found in the response
    (`section` "body", `sentence` None) also belongs to the answer *(ours)*.
    """
    wanted = answer_sections(response.text, response.prefill)
    return lambda claim: (
        claim.section in wanted or (claim.section == "body" and claim.sentence is None)
    )


def thinking(text: str, prefill: str = "") -> str:
    """Return the thinking of a response, the text in `<think>`; "" if there is none.

    `prefill` is an unclosed tag at the end of the prompt, such as "<think>", or "".
    """
    return _joined(text, [part for part in sections(text, prefill) if part[0] == "think"])


@lru_cache(maxsize=1024)
def final_answer(text: str, require_box: bool = False, prefill: str = "") -> str | None:
    r"""Return the final answer of a response, or None.

    Text up to the end of the thinking is ignored. The answer is the first of these in the rest:

    * the content of the last balanced `\boxed{…}`;
    * the last `<answer>…</answer>`, or the text after `[Answer]`;
    * all text except plans (the text after `[Structure]` and `[Outline]`).

    The result is None if the thinking is not closed, or if the answer is empty.

    Args:
        require_box: whether to return None if there is no box.
        prefill: an unclosed tag at the end of the prompt, such as "<think>", or "".
    """
    pieces, state = _pieces(text, prefill)
    if state == "think":
        return None
    answer = [piece for piece in _after_thinking(pieces) if piece[0] != _PLAN]
    for _, start, end in reversed(answer):
        if box := max(boxes(text[start:end]), default=None):
            return text[start + box[1] : start + box[2]].strip() or None
    if require_box:
        return None
    marked = [piece for piece in answer if piece[0] == "answer"]
    return _joined(text, marked[-1:] or answer) or None


def well_formed(text: str, prefill: str = "") -> bool:
    """Return whether a response is one `<think>…</think>` and one `<answer>…</answer>`.

    The tags must be in lower case, and no text may be outside of them. The `<think>` may be at the
    end of the prompt (`prefill`). Both parts must have text in the response itself *(ours)*. This
    is the rule of KnowRL's code; KLCF's format reward uses it too *(ours)*.
    """
    tags = [
        marker[0]
        for part in (opened(prefill), text)
        for marker in _MARKER.finditer(part)
        if marker["tag"]
    ]
    parts = [state for state, start, end in _pieces(text, prefill)[0] if text[start:end].strip()]
    return tags == [*TAGS] and parts == ["think", "answer"]


def outlined(text: str) -> bool:
    """Return whether a text is an outlined answer: `[Structure]`, `[Outline]` and `[Answer]`.

    This is the form of FoRAG's answers. Each part occurs once, in this order, and has content.
    There may be no text before the first part, and no tags. The points of the outline need not be
    numbered.
    """
    markers = list(_MARKER.finditer(text))
    parts = [marker["part"] for marker in markers]
    if parts != ["Structure", "Outline", "Answer"] or text[: markers[0].start()].strip():
        return False
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    return all(text[marker.end() : end].strip() for marker, end in zip(markers, ends, strict=True))


def planned(text: str) -> bool:
    """Return whether a text contains `[Structure]`, `[Outline]` or `[Answer]`."""
    return any(marker["part"] for marker in _MARKER.finditer(text))


def unfinished(text: str, prefill: str) -> bool:
    """Whether a response has a plan (`[Structure]` or `[Outline]`) but no answer text.

    `prefill` is an unclosed tag at the end of the prompt, such as "<think>", or "".
    """
    pieces = _after_thinking(_pieces(text, prefill)[0])
    states = {state for state, *_ in pieces}
    filled = {state for state, start, end in pieces if text[start:end].strip()}
    return _PLAN in states and "answer" not in filled


def opened(prompt: str) -> str:
    r"""Return the tag that a prompt leaves open, with the text after it; "" if there is none.

    An example is "<think>\n".
    """
    start, state = 0, "body"
    for marker in _MARKER.finditer(prompt):
        if not marker["close"] and state != "think":
            start = marker.start()
        state = _next_state(state, marker)
    return prompt[start:] if state != "body" else ""


def boxes(text: str) -> list[tuple[int, int, int]]:
    r"""Return (start, start of the content, end of the content) of every balanced `\boxed{…}`.

    An escaped brace is a literal character.
    """
    # the start of the box and of its content for each open brace; None if the brace opens no box
    open_braces: list[tuple[int, int] | None] = []
    spans = []
    for match in re.finditer(r"(?s)\\boxed\s*\{|\\.|[{}]", text):
        if match[0] == "}":
            if open_braces and (box := open_braces.pop()):
                spans.append((*box, match.start()))
        elif match[0] == "{" or match[0].startswith(r"\boxed"):
            open_braces.append(None if match[0] == "{" else match.span())
    return spans


def _pieces(text: str, prefill: str) -> tuple[list[Section], str]:
    """Return the pieces (state, start, end) between the markers, and the state at the end.

    A state is "body", "think", "answer" or "plan". Empty pieces are included.
    """
    state, start = "body", 0
    for marker in _MARKER.finditer(prefill):
        state = _next_state(state, marker)
    pieces: list[Section] = []
    for marker in _MARKER.finditer(text):
        pieces.append((state, start, marker.start()))
        if marker["close"]:  # the opening tag may be missing
            _open_before(pieces, marker["tag"].lower())
        state, start = _next_state(state, marker), marker.end()
    return [*pieces, (state, start, len(text))], state


def _after_thinking(pieces: Sequence[Section]) -> Sequence[Section]:
    """Return the pieces after the last "think" piece, or all pieces if there is no thinking."""
    states = [state for state, *_ in pieces]
    return pieces[len(states) - states[::-1].index("think") :] if "think" in states else pieces


def _next_state(state: str, marker: re.Match[str]) -> str:
    """Return the state after a marker: "body", "think", "answer" or "plan"."""
    if state == "think":  # only `</think>` ends the thinking
        return "body" if marker["close"] and marker["tag"].lower() == "think" else "think"
    if marker["part"]:
        return "answer" if marker["part"] == "Answer" else _PLAN
    return "body" if marker["close"] else marker["tag"].lower()


def _open_before(pieces: list[Section], tag: str) -> None:
    """Assign the pieces before an unopened closing tag to its section, by changing `pieces`."""
    if pieces[-1][0] in ("think", tag):
        return
    # no copy of the list: a response may have tens of thousands of closing tags
    for i in range(len(pieces) - 1, -1, -1):
        state, start, end = pieces[i]
        # `</think>` covers all text since the last thinking, `</answer>` only the text since a tag
        if state == "think" or (tag != "think" and state != "body"):
            break
        pieces[i] = (tag, start, end)


def _split_boxes(text: str, section: str, start: int, end: int) -> Iterator[Section]:
    r"""Split a piece at each outermost `\boxed{` and its closing brace; yield sections.

    The content of a box in the "body" is an "answer" section.
    """
    at = start
    for opening, begin, finish in sorted(boxes(text[start:end])):
        if start + opening >= at:  # not a box inside the last one
            yield section, at, start + opening
            yield "answer" if section == "body" else section, start + begin, start + finish
            at = start + finish + 1
    yield section, at, end


def _joined(text: str, parts: Sequence[Section]) -> str:
    stripped = (text[start:end].strip() for _, start, end in parts)
    return "\n".join(filter(None, stripped))
