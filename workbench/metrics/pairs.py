"""The answers of two files to the same questions, in pairs, and which of both a judge prefers,
asked in both orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workbench.answers import answer_text
from workbench.credit.tokens import words
from workbench.judge import read, render
from workbench.metrics.preferences import ORDERS
from workbench.metrics.rows import each_row, file_of
from workbench.store import QUESTIONS, read_questions
from workbench.types import Cost, Failure, Judge, Prompt, WorkbenchError

# question, training step (None where there is none), number of the sample
Key = tuple[str, int | None, int]


class Answer(NamedTuple):
    question: str
    text: str  # what a reader sees, without thinking and plan


@dataclass(frozen=True)
class Pair:
    """Two answers to one question: that of the first file and that of the second."""

    key: Key
    question: str
    answers: tuple[str, str]

    @property
    def identical(self) -> bool:
        """Identical answers are a tie without a judge, since both orders are one prompt."""
        return self.answers[0] == self.answers[1]

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The pair in each of `ORDERS`, if it has to be asked about."""
        orders = () if self.identical else (self.answers, self.answers[::-1])
        return tuple(render("prefer", question=self.question, responses=order) for order in orders)


class Pairs(NamedTuple):
    pairs: tuple[Pair, ...]
    # answers without a partner, or of which there are two; pairs whose questions differ
    left_out: dict[str, int]


def pair_files(feedback: Path | str, other: Path | str) -> Pairs:
    """Pair the answers of two files, or runs' folders: those to one question, of one step, with
    one sample number.

    Their order in the files does not matter, and they need not be judged. Answers of several
    steps are those of as many policies, mostly drawn in training.

    Raises:
        WorkbenchError: it is one file, the pairs are of several steps of a training, a file is
        missing or is not feedback, a
            question's text is not known, or there is no pair that can be told from another.
    """
    if file_of(feedback).resolve() == file_of(other).resolve():
        raise WorkbenchError(
            f"{feedback} and {other} are the same file: name another one to compare with"
        )
    first, second = _answers(feedback), _answers(other)
    repeated = {key for side in (first, second) for key, found in side.items() if len(found) > 1}
    first, second = (
        {key: found for key, found in side.items() if key not in repeated}
        for side in (first, second)
    )
    common = [key for key in first if key in second]
    pairs = tuple(
        Pair(key, first[key][0].question, (first[key][0].text, second[key][0].text))
        for key in common
        if first[key][0].question.split() == second[key][0].question.split()
    )
    if not pairs:
        one, two = (next(iter([*side, *repeated])) for side in (first, second))
        raise WorkbenchError(
            f"no answer of {feedback} has a partner in {other}: answers are paired by question,"
            " its text, step and sample number, each of which a file may hold once (as question"
            f" '{one[0]}', step {one[1]}, sample {one[2]} in the first and '{two[0]}', {two[1]},"
            f" {two[2]} in the second): give two files of answers to the same questions"
        )
    steps = {key[1] for key in common} - {None}
    if len(steps) > 1:
        raise WorkbenchError(
            f"{feedback} and {other} hold samples of {len(steps)} steps of a training, so that a"
            " win rate would not be about one policy: compare the answers of two evaluations,"
            " which `workbench evaluate RUN --split test --out FILE.jsonl` writes"
        )
    left_out = {
        "only_feedback": len(first) - len(common),
        "only_other": len(second) - len(common),
        "repeated": len(repeated),
        "other_question": len(common) - len(pairs),
    }
    return Pairs(pairs, left_out)


def judge_pairs(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The preferences, as `preferences.read_preferences` has them, and what they took: all calls
    go out together.
    """
    prompts = [prompt for pair in pairs for prompt in pair.prompts]
    replies = iter(judge(prompts) if prompts else ())
    rows, cost, failures, reasons = [], Cost(), Counter[str](), dict[str, str]()
    for pair in pairs:
        question, step, sample = pair.key
        shared: dict[str, Any] = {
            "question_id": question,
            "step": step,
            "sample": sample,
            "identical": pair.identical,
            "words": tuple(len(words(text)) for text in pair.answers),
        }
        for order in ORDERS:
            verdict: str | Failure = "tie"
            if not pair.identical:
                reply = next(replies)
                verdict, cost = reply.error or read("prefer", reply.text or ""), cost + reply.cost
            if not isinstance(verdict, Failure):
                rows.append({**shared, "order": order, "label": verdict})
                continue
            rows.append({**shared, "order": order, "error": asdict(verdict)})
            kind = f"{verdict.stage}: {verdict.kind}"
            failures[kind] += 1
            reasons.setdefault(kind, verdict.message)
    used = asdict(cost) | {"seconds": round(cost.seconds, 3)}
    return rows, used | {"failed": failures.total(), "failures": dict(failures), "reasons": reasons}


def _answers(path: Path | str) -> dict[Key, list[Answer]]:
    """The answers of a file by question, step and sample number."""
    file = file_of(path)
    stored = read_questions(file.parent) if (file.parent / QUESTIONS).exists() else {}
    found: dict[Key, list[Answer]] = {}
    for key, question, text in each_row(file, _read):
        if question is None and key[0] in stored:
            question = stored[key[0]].text
        if question is None:
            raise WorkbenchError(
                f"{file}: what question '{key[0]}' asks is not known: keep its {QUESTIONS} beside"
                ' it, or give rows a "question", so that a judge can read it'
            )
        found.setdefault(key, []).append(Answer(question.strip(), text))
    if not found:
        raise WorkbenchError(
            f"{path} has no rows yet, so there is nothing to compare: name another file"
        )
    return found


def _read(stored: Mapping[str, Any]) -> tuple[Key, str | None, str]:
    """A stored row's key, its question if the row holds it, and its answer."""
    name = stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    step = None if stored.get("step") is None else int(stored["step"])
    question = stored.get("question")
    text = answer_text(stored["response"], prefill=stored.get("prefill") or "")
    key = (str(name), step, int(stored.get("sample") or 0))
    return key, question if isinstance(question, str) else None, text
