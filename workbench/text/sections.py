r"""What of a response is thinking, plan and answer: the one place that says so, for its form,
its claims and its outcome.

A tag is read in any case; one that is never closed goes on to the end (the policy was cut off,
or the closing tag is a stop string); one that is closed without having been opened was opened by
the prompt, and holds all since the last `</think>` (for `</answer>`: since the last tag); opened
again inside itself, it changes nothing, so that `<think>a<think>b</think>c</think>` is thought
from beginning to end. Inside `<think>` there is no answer. In an outlined answer (FoRAG, arXiv
2406.13779, section 3.1) `[Answer]` begins the answer; what follows `[Structure]` and `[Outline]`
is a plan: it states nothing and is in no section. What a `\boxed{…}` whose braces balance holds
is an answer *(all ours)*.

`prefill` is the end of the prompt that the response continues, such as "<think>\n" where the
chat template opens the thinking. Positions are always those of the response's own text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from workbench.text.kept import kept
from workbench.types import Claim, Response

# "think", "answer" or "body", and the half-open range of its characters
Section = tuple[str, int, int]

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_PLAN = "plan"
_MARKER = re.compile(
    r"<(?P<close>/?)(?P<tag>(?i:think|answer))>|\[(?P<part>Structure|Outline|Answer)\]"
)


@kept
def sections(text: str, prefill: str = "") -> tuple[Section, ...]:
    """The sections of `text` in order, disjoint; the markers stand between them, and white space
    alone is none.
    """
    divided = (
        part
        for piece in _pieces(text, prefill)[0]
        if piece[0] != _PLAN
        for part in _boxed(text, *piece)
    )
    return tuple(part for part in divided if text[part[1] : part[2]].strip())


def section_at(found: Sequence[Section], position: int) -> str | None:
    """The section, of those that `sections` found, that holds the character at `position`; None
    in a marker or a plan.
    """
    number = bisect_right(found, position, key=lambda section: section[1]) - 1
    return found[number][0] if number >= 0 and position < found[number][2] else None


def answer_sections(text: str, prefill: str = "") -> tuple[str, ...]:
    """The sections that form the answer: "answer" if `[Answer]` or an answer tag marks one, else
    everything except the thinking.

    The mark must follow the thinking *(ours)*. A tag inside the thinking is ignored; a tag that
    opens an empty answer counts. A box alone is not a mark, because the sentence around it is part
    of the answer.
    """
    marked = any(state == "answer" for state, *_ in _after_thinking(_pieces(text, prefill)[0]))
    return ("answer",) if marked else ("answer", "body")


def answer_text(text: str, prefill: str = "") -> str:
    """What a response says as its answer: the text of its `answer_sections`, without thinking
    and plan.
    """
    wanted = answer_sections(text, prefill)
    parts: Sequence[Section] = (
        _pieces(text, prefill)[0] if "body" in wanted else sections(text, prefill)
    )
    return _joined(text, [part for part in parts if part[0] in wanted])


def in_answer(response: Response) -> Callable[[Claim], bool]:
    """Whether the answer of a response makes a claim. One that was found nowhere in it, and is
    not said to be thought, is taken for the answer's *(ours)*: nothing is left unjudged because
    it could not be placed."""
    wanted = answer_sections(response.text, response.prefill)
    return lambda claim: (
        claim.section in wanted or (claim.section == "body" and claim.sentence is None)
    )


def thinking(text: str, prefill: str = "") -> str:
    """What a response says in its think sections."""
    return _joined(text, [part for part in sections(text, prefill) if part[0] == "think"])


@kept
def final_answer(text: str, require_box: bool = False, prefill: str = "") -> str | None:
    r"""What a response puts forward as its answer: the last balanced `\boxed{…}` after the
    reasoning, else the last `<answer>…</answer>` or `[Answer]`, else all that follows
    `</think>`.

    None if there is none: reasoning that is not closed, nothing written, or no box where
    `require_box` asks for one.
    """
    pieces, state = _pieces(text, prefill)
    if state == "think":
        return None
    said = [piece for piece in _after_thinking(pieces) if piece[0] != _PLAN]
    box = next(
        (
            box
            for _, start, end in reversed(said)
            if (box := _last_box(text[start:end])) is not None
        ),
        None,
    )
    if box is not None or require_box:
        return (box or "").strip() or None
    marked = [piece for piece in said if piece[0] == "answer"]
    return _joined(text, marked[-1:] or said) or None


def well_formed(text: str, prefill: str = "") -> bool:
    """One `<think>…</think>` and then one `<answer>…</answer>`, in small letters, and nothing
    else but white space.

    The tag rule of KnowRL's code; KLCF's format reward takes the same *(ours)*. Tags that the
    prompt opened count; what it says inside them does not: neither part may be empty in the
    response's own text *(ours)*.
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
    """One `[Structure]`, then one `[Outline]`, then one `[Answer]`, each with something behind
    it, nothing before them, and no tag: the form of FoRAG's answers, whatever an outline looks
    like. `outline.read_outline` rests on this, and asks for numbered points as well."""
    markers = list(_MARKER.finditer(text))
    if [marker["part"] for marker in markers] != ["Structure", "Outline", "Answer"] or text[
        : markers[0].start()
    ].strip():
        return False
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    return all(text[marker.end() : end].strip() for marker, end in zip(markers, ends, strict=True))


def planned(text: str) -> bool:
    """Whether any part of such an answer is marked."""
    return any(marker["part"] for marker in _MARKER.finditer(text))


def unmarked(text: str) -> str:
    """The text with a space in the place of every tag and marker."""
    return _MARKER.sub(" ", text)


def unfinished(text: str, prefill: str = "") -> bool:
    """Whether an answer is planned, and then none is given: there is no `[Answer]`, or nothing
    in it.
    """
    pieces = _after_thinking(_pieces(text, prefill)[0])
    states, said = (
        {state for state, *_ in pieces},
        {state for state, start, end in pieces if text[start:end].strip()},
    )
    return _PLAN in states and "answer" not in said


def opened(prompt: str) -> str:
    """What the end of a prompt leaves open for the response, from its tag on: "<think>\\n"; ""
    if nothing is open there.
    """
    start, state = 0, "body"
    for marker in _MARKER.finditer(prompt):
        if not marker["close"]:
            start = marker.start() if state != "think" else start
        state = _after(state, marker)
    return prompt[start:] if state != "body" else ""


def boxes(text: str) -> list[tuple[int, int, int]]:
    r"""Every `\boxed{…}` whose braces balance: where it begins, and where its content begins and
    ends. An escaped brace is a character."""
    # where each open brace's box and content begin; None if it is not a box's
    opened: list[tuple[int, int] | None] = []
    found = []
    for match in re.finditer(r"\\boxed\s*\{|\\.|[{}]", text, re.S):
        if match[0] == "}":
            if opened and (begun := opened.pop()):
                found.append((*begun, match.start()))
        elif match[0] == "{" or match[0].startswith(r"\boxed"):
            opened.append(None if match[0] == "{" else (match.start(), match.end()))
    return found


def _pieces(text: str, prefill: str) -> tuple[list[Section], str]:
    """The text between the markers, plans and white space too, each with the state it stands in;
    and the state at the end.
    """
    state, start = "body", 0
    for marker in _MARKER.finditer(prefill):
        state = _after(state, marker)
    pieces: list[Section] = []
    for marker in _MARKER.finditer(text):
        pieces.append((state, start, marker.start()))
        if marker["close"]:
            _claim(pieces, marker["tag"].lower())
        state, start = _after(state, marker), marker.end()
    return [*pieces, (state, start, len(text))], state


def _after_thinking(pieces: Sequence[Section]) -> Sequence[Section]:
    last = max(
        (number for number, (state, *_) in enumerate(pieces) if state == "think"), default=-1
    )
    return pieces[last + 1 :]


def _after(state: str, marker: re.Match[str]) -> str:
    if marker["part"]:
        return state if state == "think" else "answer" if marker["part"] == "Answer" else _PLAN
    tag = marker["tag"].lower()
    if state == "think":
        return "body" if marker["close"] and tag == "think" else "think"
    return "body" if marker["close"] else tag


def _claim(pieces: list[Section], tag: str) -> None:
    """Give a closing tag that nothing opened the pieces before it, back to the last tag that it
    may not cross.
    """
    if pieces[-1][0] in ("think", tag):
        return
    first = len(pieces)
    while (
        first
        and pieces[first - 1][0] != "think"
        and (tag == "think" or pieces[first - 1][0] == "body")
    ):
        first -= 1
    pieces[first:] = [(tag, start, end) for _, start, end in pieces[first:]]


def _boxed(text: str, section: str, start: int, end: int) -> Iterator[Section]:
    r"""A piece divided at each outermost `\boxed{` and its brace."""
    at = start
    for opening, begin, finish in sorted(boxes(text[start:end])):
        if start + opening >= at:
            yield section, at, start + opening
            yield "answer" if section == "body" else section, start + begin, start + finish
            at = start + finish + 1
    yield section, at, end


def _last_box(text: str) -> str | None:
    r"""What is in the `\boxed{…}` that begins last of those whose braces balance."""
    last = max(boxes(text), default=None)
    return None if last is None else text[last[1] : last[2]]


def _joined(text: str, parts: Sequence[Section]) -> str:
    return "\n".join(said for _, start, end in parts if (said := text[start:end].strip()))
