"""The same prompt elsewhere: two stored answers to it beside each other, word by word, with what
each earned in its group.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any

from workbench.inspector.opened import Opened, open_row
from workbench.inspector.parts import answered
from workbench.inspector.runs import Runs, damage
from workbench.inspector.what_if import group_rows
from workbench.runs.rows import Entry
from workbench.token_view import as_json
from workbench.types import Question

MOST = 10_000_000  # comparisons that a difference may take: a second or two
_LETTER = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # of writing without spaces between words
_WORD = re.compile(rf"\s*(?:{_LETTER}|(?:(?!{_LETTER})\w)+|[^\w\s])|\s+")
# A run of marks is looked at once, from its first one on: from each of them it would take the
# square of their number.
_SENTENCE = re.compile(r"\s*.+?(?:(?<![.!?。！？])[.!?。！？]+(?=\s|$)|\n|$)|\s+", re.DOTALL)
Piece = tuple[bool, str, str]  # whether both say it, what the first says, what the second says


def difference(first: str, second: str) -> tuple[str, list[Piece]]:
    """What two texts share and where they differ, and in what it is told: "words", of very long
    texts "sentences" or "texts".

    White space between words makes no difference; joined, the pieces of each side are its text.
    """
    for name, unit in (("words", _WORD), ("sentences", _SENTENCE)):
        mine, theirs = unit.findall(first), unit.findall(second)
        keys, other_keys = [piece.strip() for piece in mine], [piece.strip() for piece in theirs]
        # difflib's autojunk: of 200 units on, frequent ones begin no match
        for rare in (False, True):
            if (
                _effort(
                    keys,
                    other_keys,
                    len(other_keys) // 100 + 1 if rare and len(other_keys) >= 200 else math.inf,
                )
                <= MOST
            ):
                blocks = SequenceMatcher(None, keys, other_keys, autojunk=rare).get_opcodes()
                return name, [
                    (tag == "equal", "".join(mine[a:b]), "".join(theirs[c:d]))
                    for tag, a, b, c, d in blocks
                ]
    return "texts", [(first == second, first, second)]


def _effort(first: Sequence[str], second: Sequence[str], usual: float) -> int:
    """The comparisons that a difference takes at most: each match that is found looks at all
    pairs of the same unit again.

    Those that the second text has more than `usual` times are left out.
    """
    counts, others = Counter(first), Counter(second)
    alike = [(count, others[unit]) for unit, count in counts.items() if 0 < others[unit] <= usual]
    return sum(count * other for count, other in alike) * sum(map(min, alike)) // 2


def same_prompt(runs: Runs) -> Callable[[Any], dict[str, Any]]:
    """The function with which the page asks for an answer to the same prompt; texts come inside
    the text of JSON.
    """

    @answered
    def beside(request: dict[str, Any]) -> dict[str, Any]:
        other = dict(request.get("other") or {})
        return {"text": as_json(compared(runs, str(request["run"]), str(request["id"]), other))}

    return beside


def compared(runs: Runs, name: str, row: str, other: dict[str, Any]) -> dict[str, Any]:
    """A row beside another answer to its prompt.

    Of `other` ("run", "step", "id") what is missing, or is none, is chosen: the same run, there
    the last other step with an answer to the prompt (of another run the same step, if it has
    one), there the first. Without any the second side is None.

    Raises:
        WorkbenchError: no such run or row.
    """
    # a large record is read first: of its last rows alone neither groups nor other steps are known
    runs.whole_index(name)
    opened, names = open_row(runs, name, row), runs.names()
    chosen = next((one for one in names if one == other.get("run")), name)
    answers = [
        one
        for one in _answers(runs, chosen, name, opened.feedback.response.question)
        if (chosen, one.id) != (name, row)
    ]
    steps = list(dict.fromkeys(one.step for one in answers))
    step = _step(steps, opened.feedback.response.step, same=chosen == name, asked=other.get("step"))
    here = [one for one in answers if one.step == step]
    entry = next((one for one in here if one.id == other.get("id")), next(iter(here), None))
    told: dict[str, Any] = {
        "runs": names,
        "run": chosen,
        "steps": steps,
        "step": step,
        "first": _side(opened, name),
    }
    if entry is None:
        return told | {
            "second": None,
            "note": f"Run '{chosen}' has no other answer to this prompt.",
        }
    found = open_row(runs, chosen, entry.id)
    texts = [_whole(side.feedback.response.text) for side in (opened, found)]
    told["by"], told["pieces"] = difference(*texts)
    return told | {"second": _side(found, chosen), "note": opened.note or found.note}


def _step(steps: Sequence[int | None], own: int | None, *, same: bool, asked: Any) -> int | None:
    if asked in steps:
        return asked
    if not same and own in steps:
        return own
    others = [step for step in steps if step != own]
    return max(others or steps, key=lambda step: -1 if step is None else step, default=None)


def _answers(runs: Runs, name: str, own: str, question: Question) -> list[Entry]:
    """The rows of a run that answer a question: those with its text, and in its own run those
    with its id.
    """
    with damage(f"run '{name}'"):
        index, ids = runs.whole_index(name), {question.id} if name == own else set()
        ids |= {
            key
            for key, one in runs.asked(name).items()
            if question.text.strip() and one.text == question.text
        }
        rows = [entry for key in ids for entry in index.answers(key)]
        return sorted(
            rows, key=lambda entry: (-1 if entry.step is None else entry.step, entry.number)
        )


def _side(opened: Opened, name: str) -> dict[str, Any]:
    """One of the answers: where it stands, what it earned and its group."""
    row = opened.feedback
    outcome = row.verdict("outcome")
    return {
        "run": name,
        "id": row.response.id,
        "step": row.response.step,
        "outcome": outcome.label if outcome and not outcome.error else None,
        "values": {method: reward.value for method, reward in row.rewards.items()},
        "reasons": {
            method: reward.error.message for method, reward in row.rewards.items() if reward.error
        },
        "group": group_rows(row, opened.group or (row,)),
    }


def _whole(text: str) -> str:
    """Text that any encoding can hold: a lone surrogate, as a cut byte sequence decodes to, is
    replaced.
    """
    return text.encode("utf-8", "replace").decode()
