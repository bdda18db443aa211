"""Win rate: a judge compares the answers of two files to the same questions.

Each pair is judged twice, with the order swapped (KLCF, arXiv 2509.23765, appendix A.4.2).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from workbench.credit.tokens import words
from workbench.judge import read_reply, render
from workbench.metrics.bootstrap import collect, intervals, wilson
from workbench.metrics.outcomes import RESAMPLES
from workbench.metrics.rows import check_one_policy, each_row, file_of, mean
from workbench.runs.store import QUESTIONS, read_questions
from workbench.text import answer_text
from workbench.types import Cost, Failure, JsonMapping, JsonObject, Judge, Prompt, WorkbenchError

Key = tuple[str, int | None, int]  # question id, training step or None, sample number
Answer = tuple[str, str]  # the text of a question, and the answer without thinking and plan

VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}  # verdict -> value of the answer shown first
REASONS = {
    "win_rate": "no pair was judged in both orders",
    "position_bias": "no pair of different answers was judged in both orders",
}


@dataclass(frozen=True)
class Pair:
    """Two answers to one question, from two files; `answers[0]` is from the first file."""

    key: Key
    question: str
    answers: tuple[str, str]

    @property
    def identical(self) -> bool:
        """Whether the two answers are equal. Such a pair is a tie and is not sent to the judge."""
        return self.answers[0] == self.answers[1]

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Two prompts to compare the answers, one for each order.

        Identical answers need no prompt, so the result is ().
        """
        orders = () if self.identical else (self.answers, self.answers[::-1])
        return tuple(render("prefer", question=self.question, responses=order) for order in orders)


class Pairs(NamedTuple):
    """The paired answers of two files, and the number of answers left out, by reason."""

    pairs: tuple[Pair, ...]
    left_out: dict[str, int]


def pair_files(feedback: Path | str, other: Path | str) -> Pairs:
    """Pair the answers of two files, or run folders, by question, step and sample number.

    Only the answers are compared, so the rows need no verdicts.

    Args:
        feedback, other: a file of feedback rows or a run's folder each.

    Raises:
        WorkbenchError: both files are the same; a file is not feedback; the text of a question is
            not known; no answers can be paired; or the pairs are from several training steps.
    """
    if file_of(feedback).resolve() == file_of(other).resolve():
        raise WorkbenchError(
            f"{feedback} and {other} are the same file: name another file to compare with"
        )
    first, second = read_answers(feedback), read_answers(other)
    repeated = {key for side in (first, second) for key, group in side.items() if len(group) > 1}
    common = [key for key in first if key in second and key not in repeated]
    pairs = tuple(
        Pair(key, first[key][0][0], (first[key][0][1], second[key][0][1]))
        for key in common
        if first[key][0][0].split() == second[key][0][0].split()
    )
    if not pairs:
        raise WorkbenchError(
            f"no answer of {feedback} has a partner in {other}: answers are paired if question id,"
            " question text, step and sample number are equal and occur once in each file; give two"
            " files of answers to the same questions"
        )
    check_one_policy(feedback, (key[1] for key in common))
    left_out = {
        "only_feedback": len(first.keys() - second.keys() - repeated),
        "only_other": len(second.keys() - first.keys() - repeated),
        "repeated": len(repeated),
        "other_question": len(common) - len(pairs),
    }
    return Pairs(pairs, left_out)


class Duel(NamedTuple):
    """The judge's results for one pair of answers, which was judged in both orders.

    `leading` and `following` are 1 if the first file's answer is preferred, 0.5 for a tie, else 0.
    """

    question_id: str
    leading: float  # value (`VALUES`) of the first file's answer when it was shown first
    following: float  # value of the first file's answer when it was shown second
    words: tuple[int, int] = (0, 0)  # number of words of each answer
    identical: bool = False  # a tie without a judge

    @property
    def score(self) -> float:
        """1 if the first file's answer wins in both orders, 0 if it loses in both, else 0.5."""
        # An answer that wins in only one order may win because of its position. If the judge never
        # returns a tie, this score equals the paper's mean over both orders.
        values = (self.leading, self.following)
        return 1.0 if min(values) > 0.5 else 0.0 if max(values) < 0.5 else 0.5


def judge_pairs(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[Duel], JsonObject]:
    """Judge all pairs in both orders, in one batch of calls.

    Return a `Duel` for each pair, and the judge's cost and failures (see `ask`). A pair is left out
    if the judge failed in one of the two orders. Identical answers are a tie without a call.
    """
    prompts = [(pair.key[0], prompt) for pair in pairs for prompt in pair.prompts]
    verdicts, used = ask(judge, prompts)
    replies, duels = iter(verdicts), []
    for pair in pairs:
        values = [0.5, 0.5] if pair.identical else []
        values += [VALUES[label] for _ in pair.prompts if (label := next(replies)) is not None]
        if len(values) == 2:
            # in the second order the first file's answer is shown second
            following = 1 - values[1]
            sizes = (len(words(pair.answers[0])), len(words(pair.answers[1])))
            duels.append(Duel(pair.key[0], values[0], following, sizes, pair.identical))
    return duels, used


def ask(judge: Judge, prompts: Sequence[tuple[str, Prompt]]) -> tuple[list[str | None], JsonObject]:
    """Send prompts to the judge; return the label in each reply, and the cost and failures.

    A label is None if the call failed or the reply was unreadable. The cost and failures are a JSON
    object. It has the fields of `Cost`, `failed` (number of failures), `failures` (number of
    failures of each kind) and `reasons` (the first message of each kind).

    Args:
        prompts: (question id, prompt) pairs. The ids are used only in messages.
    """
    replies = judge([prompt for _, prompt in prompts]) if prompts else ()
    labels, cost = list[str | None](), Cost()
    failures, reasons = Counter[str](), dict[str, str]()
    for (question, prompt), reply in zip(prompts, replies, strict=True):
        verdict, cost = read_reply(prompt.task, reply), cost + reply.cost
        if isinstance(verdict, Failure):
            kind = f"{verdict.stage}: {verdict.kind}"
            failures[kind] += 1
            reasons.setdefault(kind, f"question '{question}': {verdict.message}")
            verdict = None
        labels.append(verdict)
    failed = {"failed": failures.total(), "failures": dict(failures), "reasons": reasons}
    return labels, asdict(cost) | {"seconds": round(cost.seconds, 3)} | failed


def win_rate(
    duels: Sequence[Duel], incomplete: int = 0, seed: int = 0, resamples: int = RESAMPLES
) -> JsonObject:
    """Return the win rate of the first file's answers against the second file's answers.

    * `win_rate`: the mean `Duel.score`; a tie counts 0.5.
    * `position_bias`: the share of pairs in which the judge's preference depends on the order.
      Pairs of identical answers do not count.
    * `words`: `{feedback, other}`, the mean number of words of the first and second file's answers.
    * `pairs`: `{n, won, tied, lost, identical, incomplete}`, the number of pairs by result.

    The two rates have 95 % bootstrap intervals over questions. A bootstrap interval that is a
    single point is replaced by Wilson's interval.

    Args:
        duels: the judge's results, one for each pair, from `judge_pairs`.
        incomplete: the number of pairs that `judge_pairs` left out, because the judge failed in one
            of the orders. It is only reported.
        seed: seed of the bootstrap.
        resamples: number of resamples of the bootstrap.
    """
    terms = [(duel.question_id, _terms(duel)) for duel in duels]
    resampled = intervals(collect(terms, tuple(REASONS)), resamples, seed)
    cells: JsonObject = {}
    for name, reason in REASONS.items():
        cell = resampled[name] | _bounds(resampled[name])
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
        name: mean([duel.words[side] for duel in duels])
        for side, name in enumerate(("feedback", "other"))
    }
    return cells | {"words": mean_words, "pairs": counts}


def _terms(duel: Duel) -> dict[str, tuple[float, float]]:
    terms = {"win_rate": (duel.score, 1.0)}
    if not duel.identical:
        terms["position_bias"] = (float(duel.leading != duel.following), 1.0)
    return terms


def _bounds(cell: JsonMapping) -> dict[str, float | None]:
    """Return the interval `{low, high}` of a rate, from its bootstrap interval.

    If the bootstrap interval is a single point, it is replaced by Wilson's interval. Both bounds
    are None if there is no bootstrap interval.
    """
    low, high = cell["low"], cell["high"]
    if low is not None and low == high:
        low, high = wilson(cell["value"] * cell["n"], cell["n"])
    return {"low": low, "high": high}


def read_answers(path: Path | str) -> dict[Key, list[Answer]]:
    """Return the answers in a file or a run's folder: key -> list of answers.

    A key is (question id, training step or None, sample number). An answer is (text of the
    question, text of the response without thinking and plan). The list has more than one answer
    only if the file repeats the key.

    Raises:
        WorkbenchError: the file has no rows or is not feedback, or a question's text is missing.
    """
    file = file_of(path)
    stored = read_questions(file.parent) if (file.parent / QUESTIONS).exists() else {}
    answers: dict[Key, list[Answer]] = {}
    for key, question, text in each_row(file, _read):
        if question is None and key[0] in stored:
            question = stored[key[0]].text
        if question is None:
            raise WorkbenchError(
                f"{file}: the text of question '{key[0]}' is missing, and the judge needs it: put"
                f' {QUESTIONS} into the same folder, or add a field "question" to the rows'
            )
        answers.setdefault(key, []).append((question.strip(), text))
    if not answers:
        raise WorkbenchError(f"{path} has no rows to compare: name another file")
    return answers


def _read(stored: JsonMapping) -> tuple[Key, str | None, str]:
    """Return a stored row's key, the text of its question (None if not stored) and its answer."""
    name = stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    step = None if stored.get("step") is None else int(stored["step"])
    question = stored.get("question")
    text = answer_text(stored["response"], prefill=stored.get("prefill") or "")
    key = (str(name), step, int(stored.get("sample") or 0))
    return key, question if isinstance(question, str) else None, text
