"""Compare two stored answers to the same prompt word by word, with their rewards and groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any

from workbench.inspector.listing import rewards_of
from workbench.inspector.opened import Opened, open_row
from workbench.inspector.parts import answered
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json
from workbench.inspector.what_if import group_rows
from workbench.runs.rows import NO_STEP
from workbench.types import Question

MOST = 10_000_000  # comparisons that a difference may take: a second or two
_LETTER = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # of writing without spaces between words
_WORD = re.compile(rf"\s*(?:{_LETTER}|(?:(?!{_LETTER})\w)+|[^\w\s])|\s+")
Piece = tuple[bool, str, str]  # whether both texts have it, the first's text, the second's


def difference(first: str, second: str) -> tuple[str, list[Piece]]:
    """The pieces that two texts share and those that differ, by "words", or by whole "texts" where
    comparing words would take too long.

    White space between words makes no difference; joined, the pieces of each side are its text.
    """
    mine, theirs = _WORD.findall(first), _WORD.findall(second)
    keys, others = [word.strip() for word in mine], [word.strip() for word in theirs]
    # each match that is found compares all pairs of equal words again
    counts, other_counts = Counter(keys), Counter(others)
    alike = [(count, other_counts[word]) for word, count in counts.items() if word in other_counts]
    effort = sum(count * other for count, other in alike) * sum(map(min, alike)) // 2
    if effort > MOST:
        return "texts", [(first == second, first, second)]
    blocks = SequenceMatcher(None, keys, others, autojunk=False).get_opcodes()
    return "words", [
        (tag == "equal", "".join(mine[a:b]), "".join(theirs[c:d])) for tag, a, b, c, d in blocks
    ]


def same_prompt(runs: Runs) -> Callable[[Any], dict[str, Any]]:
    """The function with which the page gets another answer to the same prompt, as JSON text."""

    @answered
    def beside(request: dict[str, Any]) -> dict[str, Any]:
        other = dict(request.get("other") or {})
        return {"text": as_json(compared(runs, str(request["run"]), str(request["id"]), other))}

    return beside


def compared(runs: Runs, name: str, row: str, other: dict[str, Any]) -> dict[str, Any]:
    """A row and another answer to its prompt.

    `other` ("run", "step", "id") selects the second answer. By default it is the first one of the
    same run's last other step (in another run, of the same step if it exists). Without any other
    answer the second side is None.

    Raises:
        WorkbenchError: no such run or row.
    """
    runs.all_rows(name)  # of its last rows alone neither groups nor other steps are known
    opened, names = open_row(runs, name, row), runs.names()
    chosen = next((one for one in names if one == other.get("run")), name)
    question, own = opened.feedback.response.question, opened.feedback.response.step
    answers = [
        (step, key)
        for step, key in _answers(runs, chosen, name, question)
        if (chosen, key) != (name, row)
    ]
    steps = list(dict.fromkeys(step for step, _ in answers))
    step = _step(steps, own, same=chosen == name, asked=other.get("step"))
    here = [key for found, key in answers if found == step]
    told: dict[str, Any] = {"runs": names, "run": chosen, "steps": steps, "step": step}
    told["first"] = _side(opened, name)
    if not here:
        note = f"Run '{chosen}' has no other answer to this prompt."
        return told | {"second": None, "note": note}
    found = open_row(runs, chosen, other["id"] if other.get("id") in here else here[0])
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


def _answers(runs: Runs, name: str, own: str, question: Question) -> list[tuple[int | None, str]]:
    """(step, id) of the rows of a run that answer a question: those with its text, and in its own
    run those with its id.
    """
    with damage(f"run '{name}'"):
        table, ids = runs.all_rows(name).table, {question.id} if name == own else set()
        if question.text.strip():
            asked = runs.asked(name).items()
            ids |= {key for key, one in asked if one.text == question.text}
        table = table[table["question"].isin(ids)].sort_values("step", kind="stable")
        steps = (None if step == NO_STEP else step for step in table["step"].tolist())
        return list(zip(steps, table["id"], strict=True))


def _side(opened: Opened, name: str) -> dict[str, Any]:
    """One of the answers, with its rewards and its group."""
    row = opened.feedback
    outcome = row.verdict("outcome")
    return {
        "run": name,
        "id": row.response.id,
        "step": row.response.step,
        "outcome": outcome.label if outcome and not outcome.error else None,
        **rewards_of(row),
        "group": group_rows(row, opened.group or (row,)),
    }


def _whole(text: str) -> str:
    """Text that any encoding can hold: a lone surrogate, as a cut byte sequence decodes to, is
    replaced.
    """
    return text.encode("utf-8", "replace").decode()
