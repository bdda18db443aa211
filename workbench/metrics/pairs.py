"""Win rate: a judge compares the answers of two files to the same questions, each pair twice, with
the order swapped (KLCF, arXiv 2509.23765, appendix A.4.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workbench.credit.tokens import words
from workbench.judge import read, render
from workbench.metrics.bootstrap import collect, intervals, wilson
from workbench.metrics.confidence import in_order
from workbench.metrics.outcomes import RESAMPLES
from workbench.metrics.rows import each_row, file_of
from workbench.runs.store import QUESTIONS, read_questions
from workbench.text import answer_text
from workbench.types import Cost, Failure, Judge, Prompt, WorkbenchError

# question, training step (None where there is none), number of the sample
Key = tuple[str, int | None, int]

VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}  # of the answer that is shown first
LEAST = 5  # questions below which no interval is given
REASONS = {
    "win_rate": "no pair was judged in both orders",
    "position_bias": "no pair of different answers was judged in both orders",
}


Answer = tuple[str, str]  # a question's text, and what a reader sees, without thinking and plan


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
        """The pair in both orders, if it has to be asked about."""
        orders = () if self.identical else (self.answers, self.answers[::-1])
        return tuple(render("prefer", question=self.question, responses=order) for order in orders)


class Pairs(NamedTuple):
    pairs: tuple[Pair, ...]
    # answers without a partner, or of which there are two; pairs whose questions differ
    left_out: dict[str, int]


def pair_files(feedback: Path | str, other: Path | str | None) -> Pairs:
    """Pair the answers of two files, or runs' folders: those to one question, of one step, with
    one sample number.

    Their order in the files does not matter, and they need not be judged. Answers of several
    steps are those of as many policies, mostly drawn in training.

    Raises:
        WorkbenchError: there is only one file, the pairs are of several steps of a training, a
        file is missing or is not feedback, a question's text is not known, or no pair can be
        told from another.
    """
    if other is None:
        raise WorkbenchError(
            "a judge says which of two files' answers are better: name OTHER, the file to compare"
            " with"
        )
    if file_of(feedback).resolve() == file_of(other).resolve():
        raise WorkbenchError(
            f"{feedback} and {other} are the same file: name another one to compare with"
        )
    first, second = _answers(feedback), _answers(other)
    repeated = {key for side in (first, second) for key, found in side.items() if len(found) > 1}
    common = [key for key in first if key in second and key not in repeated]
    pairs = tuple(
        Pair(key, first[key][0][0], (first[key][0][1], second[key][0][1]))
        for key in common
        if first[key][0][0].split() == second[key][0][0].split()
    )
    if not pairs:
        raise WorkbenchError(
            f"no answer of {feedback} has a partner in {other}: answers are paired by question,"
            " its text, step and sample number, each of which a file may hold once: give two files"
            " of answers to the same questions"
        )
    steps = {key[1] for key in common} - {None}
    if len(steps) > 1:
        raise WorkbenchError(
            f"{feedback} and {other} hold samples of {len(steps)} steps of a training, so that a"
            " win rate would not be about one policy: compare the answers of two evaluations,"
            " which `workbench evaluate RUN --split test --out FILE.jsonl` writes"
        )
    left_out = {
        "only_feedback": len(first.keys() - second.keys() - repeated),
        "only_other": len(second.keys() - first.keys() - repeated),
        "repeated": len(repeated),
        "other_question": len(common) - len(pairs),
    }
    return Pairs(pairs, left_out)


class Duel(NamedTuple):
    """A pair that was judged in both orders: the first file's value where its answer stood
    first, and where it stood second.
    """

    question_id: str
    leading: float
    following: float
    words: tuple[int, int] = (0, 0)  # of both answers
    identical: bool = False  # a tie without a judge

    @property
    def score(self) -> float:
        """1 if both orders prefer the first file's answer, 0 if both prefer the other's, else a
        tie: one order alone may express a preference for a place. Where a judge gives no ties
        that is the paper's mean of both trials."""
        values = (self.leading, self.following)
        return 1.0 if min(values) > 0.5 else 0.0 if max(values) < 0.5 else 0.5


def judge_pairs(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[Duel], dict[str, Any]]:
    """The pairs that were judged in both orders, and what that took: all calls go out together.

    A pair with a failed order is left out: the other order alone would carry the judge's
    preference for a place.
    """
    prompts = [prompt for pair in pairs for prompt in pair.prompts]
    replies = iter(judge(prompts) if prompts else ())
    duels, cost, failures, reasons = [], Cost(), Counter[str](), dict[str, str]()
    for pair in pairs:
        values = [0.5, 0.5] if pair.identical else []
        for _ in pair.prompts:
            reply = next(replies)
            verdict, cost = reply.error or read("prefer", reply.text or ""), cost + reply.cost
            if isinstance(verdict, Failure):
                kind = f"{verdict.stage}: {verdict.kind}"
                failures[kind] += 1
                reasons.setdefault(kind, verdict.message)
            else:
                values.append(VALUES[verdict])
        if len(values) == 2:
            following = 1 - values[1]
            sizes = (len(words(pair.answers[0])), len(words(pair.answers[1])))
            duels.append(Duel(pair.key[0], values[0], following, sizes, pair.identical))
    used = asdict(cost) | {"seconds": round(cost.seconds, 3)}
    found = {"failed": failures.total(), "failures": dict(failures), "reasons": reasons}
    return duels, used | found


def win_rate(
    duels: Sequence[Duel], incomplete: int = 0, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """How often the first file's answers are preferred to the second's.

    `win_rate` counts ties half; `position_bias` is the share of pairs of different answers on
    which the two orders disagree. Both have 95 % bootstraps over questions; where all questions
    agree, so that resampling cannot vary, Wilson's bounds; with fewer than `LEAST` questions
    none *(ours)*. `words` has the mean words of both answers; `pairs` counts pairs, `incomplete`
    of which lack an order.
    """
    drawn = intervals(
        collect([(duel.question_id, _terms(duel)) for duel in duels], tuple(REASONS)),
        in_order(()),
        resamples,
        seed,
    )
    cells: dict[str, Any] = {}
    for name, reason in REASONS.items():
        cell = drawn[name] | _bounds(drawn[name])
        cells[name] = cell if cell["value"] is not None else {**cell, "reason": reason}
    scores = [duel.score for duel in duels]
    counts = {
        "n": len(duels),
        "won": scores.count(1.0),
        "tied": scores.count(0.5),
        "lost": scores.count(0.0),
        "identical": sum(duel.identical for duel in duels),
        "incomplete": incomplete,
    }
    mean_words = {
        name: sum(duel.words[side] for duel in duels) / len(duels) if duels else None
        for side, name in enumerate(("feedback", "other"))
    }
    return cells | {"words": mean_words, "pairs": counts}


def _terms(duel: Duel) -> dict[str, tuple[float, float]]:
    terms = {"win_rate": (duel.score, 1.0)}
    if not duel.identical:
        terms["position_bias"] = (float(duel.leading != duel.following), 1.0)
    return terms


def _bounds(cell: Mapping[str, Any]) -> dict[str, float | None]:
    """The interval of a share, wide enough for the number of its questions."""
    if cell["value"] is None or cell["n"] < LEAST:
        return {"low": None, "high": None}
    low, high = cell["low"], cell["high"]
    if low == high:
        low, high = wilson(cell["value"] * cell["n"], cell["n"])
    return {"low": low, "high": high}


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
        found.setdefault(key, []).append((question.strip(), text))
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
