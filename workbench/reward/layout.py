"""How a response is laid out: whether it keeps the think/answer form, and which part of it is the answer."""

from __future__ import annotations

import re

from workbench.extract.sections import sections

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_FORM = re.compile(r"\s*<think>(.*)</think>\s*<answer>(.*)</answer>\s*", re.S)
_OPENING = re.compile(r"(?i:<answer>)|\[Answer\]")
_BOX = re.compile(r"\\boxed\s*\{")


def well_formed(text: str) -> bool:
    """One `<think>…</think>` and then one `<answer>…</answer>`, neither of them empty, and nothing else but white space.

    The tag rule of KnowRL's code; KLCF's format reward takes the same *(ours)*.
    """
    if any(text.count(tag) != 1 for tag in TAGS):  # first: with many tags, matching takes the square of the text's length
        return False
    form = _FORM.fullmatch(text)
    return form is not None and all(part.strip() for part in form.groups())


def answer_sections(text: str) -> tuple[str, ...]:
    """Which sections make the answer: "answer" where `[Answer]` or an answer tag says so, else everything but the thinking.

    A box alone does not say so: the sentence around it is part of the answer. A tag inside the thinking says nothing; one that
    opens an empty answer does.
    """
    without_boxes = _BOX.sub("{", text)
    marked = any(section == "answer" for section, *_ in sections(_OPENING.sub(r"\g<0>x", without_boxes)))
    return ("answer",) if marked else ("answer", "body")
