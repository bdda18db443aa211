"""Compare two stored answers to the same prompt word by word, with their rewards and groups."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from workbench.inspector.listing import rewards_of
from workbench.inspector.opened import Opened, open_row
from workbench.inspector.parts import ServerFunction, server_function
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json
from workbench.inspector.what_if import group_rows
from workbench.runs.rows import NO_STEP
from workbench.types import JsonObject, Question
from workbench.util.jsonl import encodable

MAX_EFFORT = 10_000_000  # maximum word comparisons for two texts; they take a second or two
_LETTER = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts without spaces between words
_WORD = re.compile(rf"\s*(?:{_LETTER}|(?:(?!{_LETTER})\w)+|[^\w\s])|\s+")
Piece = tuple[bool, str, str]  # (equal, text in the first, text in the second)


def difference(first: str, second: str) -> tuple[str, list[Piece]]:
    """Compare two texts word by word; return ("words", pieces).

    Each piece is (whether the texts are equal, text in `first`, text in `second`). The joined
    pieces give the whole texts. Differences in white space between words are ignored. If the
    comparison would take long, the words are not compared: return ("texts", [piece]), in which the
    one piece has both whole texts.
    """
    words, other_words = _WORD.findall(first), _WORD.findall(second)
    keys, others = [word.strip() for word in words], [word.strip() for word in other_words]
    # SequenceMatcher compares all pairs of equal words again after each match
    counts, other_counts = Counter(keys), Counter(others)
    alike = [(count, other_counts[word]) for word, count in counts.items() if word in other_counts]
    effort = sum(count * other for count, other in alike) * sum(map(min, alike)) // 2
    # the page would otherwise hang on two long repetitive answers
    if effort > MAX_EFFORT:
        return "texts", [(first == second, first, second)]
    blocks = SequenceMatcher(None, keys, others, autojunk=False).get_opcodes()
    return "words", [
        (tag == "equal", "".join(words[a:b]), "".join(other_words[c:d]))
        for tag, a, b, c, d in blocks
    ]


def same_prompt(runs: Runs) -> ServerFunction:
    """Return the function that the page calls to compare two answers to the same prompt.

    * Request: {"run", "id", "other"}. "run" and "id" are the run and the row id of the first
      answer. "other" may have "run", "step" and "id" of the second answer.
    * Result: {"text": the result of `compared` as JSON text}, or {"error": message}.
    """

    @server_function
    def other_answer(request: JsonObject) -> JsonObject:
        other = dict(request.get("other") or {})
        return {"text": as_json(compared(runs, str(request["run"]), str(request["id"]), other))}

    return other_answer


def compared(runs: Runs, name: str, row: str, other: JsonObject) -> JsonObject:
    """Return two answers to the same prompt, and their difference.

    * "first", "second": run, id, step, outcome, rewards and group of each answer. "second" is None
      if there is no other answer.
    * "by", "pieces": the result of `difference`; missing if there is no other answer.
    * "runs", "steps": runs and steps among which the user can choose the second answer.
    * "run", "step": run and step of the second answer.
    * "note": text shown above the answers.

    Args:
        name, row: run and row id of the first answer.
        other: optional "run", "step" and "id" of the second answer. By default, the second answer
            is from the same run, and from another step if possible.

    Raises:
        WorkbenchError: there is no such run or row.
    """
    runs.all_rows(name)  # the last rows alone contain neither whole groups nor other steps
    opened, names = open_row(runs, name, row), runs.names()
    second_run = other["run"] if other.get("run") in names else name
    question, own = opened.feedback.response.question, opened.feedback.response.step
    by_step: dict[int | None, list[str]] = {}
    for step, key in _answers(runs, second_run, name, question):
        if (second_run, key) != (name, row):
            by_step.setdefault(step, []).append(key)
    steps = list(by_step)
    step = _step(steps, own, same=second_run == name, wanted=other.get("step"))
    ids = by_step.get(step, [])
    data: JsonObject = {"runs": names, "run": second_run, "steps": steps, "step": step}
    data["first"] = _side(opened, name)
    if not ids:
        note = f"Run '{second_run}' has no other answer to this prompt."
        return data | {"second": None, "note": note}
    second = open_row(runs, second_run, other["id"] if other.get("id") in ids else ids[0])
    texts = [encodable(side.feedback.response.text) for side in (opened, second)]
    data["by"], data["pieces"] = difference(*texts)
    return data | {"second": _side(second, second_run), "note": opened.note or second.note}


def _step(
    steps: Sequence[int | None], own: int | None, *, same: bool, wanted: int | None
) -> int | None:
    """Return the step from which the second answer is taken; None if `steps` is empty.

    The result is the first of these that is in `steps`:

    * `wanted`;
    * `own`, the step of the first answer, if the answers are from different runs (not `same`);
    * the last step other than `own`;
    * `own`.
    """
    if wanted in steps:
        return wanted
    if not same and own in steps:
        return own
    others = [step for step in steps if step != own]
    return max(others or steps, key=lambda step: -1 if step is None else step, default=None)


def _answers(runs: Runs, name: str, own: str, question: Question) -> list[tuple[int | None, str]]:
    """Return (step, row id) of each answer of run `name` to a question, sorted by step.

    Questions are compared by their text. In run `own`, from which `question` comes, an equal id is
    enough.
    """
    with damage(f"run '{name}'"):
        table, ids = runs.all_rows(name).table, {question.id} if name == own else set()
        if question.text.strip():
            info = runs.question_info(name).items()
            ids |= {key for key, stored in info if stored.text == question.text}
        table = table[table["question"].isin(ids)].sort_values("step", kind="stable")
        steps = (None if step == NO_STEP else step for step in table["step"].tolist())
        return list(zip(steps, table["id"], strict=True))


def _side(opened: Opened, name: str) -> JsonObject:
    """Return the data that the page shows of one answer: step, outcome, rewards and group."""
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
