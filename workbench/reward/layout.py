"""How a response is laid out: whether it keeps the think/answer form, and which part of it is the answer."""

from __future__ import annotations

import re

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_FORM = re.compile(r"\s*<think>(.*)</think>\s*<answer>(.*)</answer>\s*", re.S)
_MARKER = re.compile(r"\[Answer\]|<answer>|<ANSWER>")


def well_formed(text: str) -> bool:
    """One `<think>…</think>` and then one `<answer>…</answer>`, neither of them empty, and nothing else but white space.

    The tag rule of KnowRL's code; KLCF's format reward takes the same *(ours)*.
    """
    form = _FORM.fullmatch(text)
    return form is not None and all(text.count(tag) == 1 for tag in TAGS) and all(part.strip() for part in form.groups())


def answer_sections(text: str) -> tuple[str, ...]:
    """Which sections make the answer: "answer" where `[Answer]` or `<answer>` says so, else everything but the thinking.

    A box alone does not say so: the sentence around it is part of the answer.
    """
    return ("answer",) if _MARKER.search(text) else ("answer", "body")
