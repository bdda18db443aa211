"""The answers of two files to the same questions, in pairs, and which of both a judge prefers,
asked in both orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workbench.answers import answer_text
from workbench.credit.tokens import words
from workbench.judge import read, render
from workbench.metrics.preferences import ORDERS
from workbench.metrics.rows import each_row, file_of
from workbench.store import QUESTIONS, read_questions
from workbench.types import Cost, Failure, Judge, Prompt, Reply, WorkbenchError

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
        """Then nobody is asked: both orders are one prompt with one reply, which is a tie or
        speaks of a place alone.
        """
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
            f"{feedback} and {other} are the same file: name another one to hold its answers"
            " against"
        )
    (first, twice), (second, twice_too) = _answers(feedback), _answers(other)
    repeated = twice | twice_too
    for path, found in ((feedback, first), (other, second)):
        _check_told_apart(path, found, repeated)
    first, second = (
        {key: one for key, one in found.items() if key not in repeated} for found in (first, second)
    )
    common = [key for key in first if key in second]
    if not common:
        raise WorkbenchError(_strangers(feedback, other, first, second))
    pairs = tuple(
        Pair(key, first[key].question, (first[key].text, second[key].text))
        for key in common
        if first[key].question.split() == second[key].question.split()
    )
    if not pairs:
        raise WorkbenchError(
            f"the questions of {feedback} and {other} share ids and not texts (as under"
            f" '{common[0][0]}'): give two files of answers to the same questions"
        )
    _check_one_policy(feedback, other, {key[1] for key in common} - {None})
    left_out = {"only_feedback": len(first) - len(common), "only_other": len(second) - len(common)}
    return Pairs(
        pairs, left_out | {"repeated": len(repeated), "other_question": len(common) - len(pairs)}
    )


def judge_pairs(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The preferences, as `preferences.read_preferences` has them, and what they took: all calls
    go out together.
    """
    prompts = [prompt for pair in pairs for prompt in pair.prompts]
    replies = iter(judge(prompts) if prompts else ())
    rows, cost, failures, reasons = [], Cost(), Counter[str](), dict[str, str]()
    for pair in pairs:
        for order in ORDERS:
            verdict: str | Failure = "tie"
            if not pair.identical:
                reply = next(replies)
                verdict, cost = _verdict(reply), cost + reply.cost
            rows.append(_row(pair, order, verdict))
            if isinstance(verdict, Failure):
                kind = f"{verdict.stage}: {verdict.kind}"
                failures[kind] += 1
                reasons.setdefault(kind, verdict.message)
    used = asdict(cost) | {"seconds": round(cost.seconds, 3)}
    return rows, used | {"failed": failures.total(), "failures": dict(failures), "reasons": reasons}


def _verdict(reply: Reply) -> str | Failure:
    verdict: str | Failure = reply.error or read("prefer", reply.text or "")
    return verdict


def _row(pair: Pair, order: str, verdict: str | Failure) -> dict[str, Any]:
    question, step, sample = pair.key
    sizes = tuple(len(words(text)) for text in pair.answers)
    row: dict[str, Any] = {"question_id": question, "step": step, "sample": sample, "order": order}
    row |= {"identical": pair.identical, "words": sizes}
    return row | (
        {"error": asdict(verdict)} if isinstance(verdict, Failure) else {"label": verdict}
    )


def _answers(path: Path | str) -> tuple[dict[Key, Answer], set[Key]]:
    """The answers of a file, and what there are two answers to, so that it is not known which
    one to take.
    """
    file = file_of(path)
    texts: dict[str, str] | None = None  # of the questions beside it, once a row needs them
    found: dict[Key, Answer] = {}
    repeated = set()
    for key, question, text in each_row(file, _read):
        if question is None:
            texts = _texts(file.parent) if texts is None else texts
            question = texts.get(key[0])
        if question is None:
            raise WorkbenchError(
                f"{file}: what question '{key[0]}' asks is not known: keep its {QUESTIONS} beside"
                ' it, or give rows a "question", so that a judge can read it'
            )
        if key in found:
            repeated.add(key)
        found[key] = Answer(question.strip(), text)
    if not found:
        raise WorkbenchError(
            f"{path} has no rows yet, so there is nothing to compare: name another file"
        )
    return found, repeated


def _check_told_apart(path: Path | str, found: Mapping[Key, Answer], repeated: Set[Key]) -> None:
    if found.keys() <= repeated:
        key = next(iter(found))
        raise WorkbenchError(
            f"there are two answers to '{key[0]}'{_place(key)}, and it is not known which one of"
            f' {path} to pair: give each answer to a question a "sample" of its own, or keep one'
        )


def _check_one_policy(feedback: Path | str, other: Path | str, steps: Set[int | None]) -> None:
    if len(steps) > 1:
        raise WorkbenchError(
            f"{feedback} and {other} hold what was sampled at {len(steps)} steps of a training, so"
            " that a win rate would be of no one policy: compare the answers of two evaluations,"
            " which `workbench evaluate RUN --split test --out FILE.jsonl` keeps"
        )


def _texts(folder: Path) -> dict[str, str]:
    """What the questions of a record ask, by their ids."""
    stored = read_questions(folder) if (folder / QUESTIONS).exists() else {}
    return {name: question.text for name, question in stored.items()}


def _read(stored: Mapping[str, Any]) -> tuple[Key, str | None, str]:
    """A stored row's key, its question where it brings it, and its answer."""
    question, text = (
        stored.get("question"),
        answer_text(stored["response"], prefill=stored.get("prefill") or ""),
    )
    identity = (
        stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    )
    step = None if stored.get("step") is None else int(stored["step"])
    key = (str(identity), step, int(stored.get("sample") or 0))
    return key, question if isinstance(question, str) else None, text


def _strangers(
    feedback: Path | str,
    other: Path | str,
    first: Mapping[Key, Answer],
    second: Mapping[Key, Answer],
) -> str:
    """Why no answer of one file has a partner in the other."""
    a, b = next(iter(first)), next(iter(second))
    if shared := {key[0] for key in first} & {key[0] for key in second}:
        a, b = (next(key for key in keys if key[0] in shared) for keys in (first, second))
        told = "answers are paired by question, step and sample number, and none is in both files"
    else:
        told = "no question is in both files"
    return (
        f"{told} ('{a[0]}'{_place(a)} and others in {feedback}, '{b[0]}'{_place(b)} and others in"
        f" {other}): give two files of answers to the same questions"
    )


def _place(key: Key) -> str:
    return (
        f" of step {key[1]} with sample number {key[2]}"
        if key[1] is not None
        else f" with sample number {key[2]}"
    )
