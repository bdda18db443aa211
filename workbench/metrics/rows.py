"""A stored feedback row, reduced to what the metrics need of it: labels, sentences, outcome,
confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from workbench.answers import final_answer, is_abstention
from workbench.failures import failed, judged, unjudged
from workbench.jsonl import iter_rows
from workbench.store import place
from workbench.types import (
    CLAIM_LABELS,
    LACKING,
    OUTCOMES,
    REFUTED,
    SCHEMA,
    SECTIONS,
    SUPPORTED,
    UNPARSED,
    USELESS,
    Feedback,
    WorkbenchError,
)

T = TypeVar("T")
STATES = ("scored", "no_claims", "abstained", "failed", "unverified", "not_judged")


@dataclass(frozen=True)
class Row:
    """One response. `labels[i]`, `sentences[i]` and `off_subject[i]` are claim i's label, its
    sentence, and whether it is about something else than what was asked (None = not known).

    `state` says whether claim metrics count it:

    * `not_judged`: nobody has read it for claims or given a verdict on it
      (`workbench.failures.judged`).
    * `failed`: its extraction or the verdict on one of its claims failed. One unknown label
      would bias every rate of the row, so the whole row is left out. (A row whose failure lies
      elsewhere has `failed` set, and its claims count.)
    * `abstained`: its outcome is `uncertain` or, without an outcome, its text declines to
      answer. It is a refusal even where claims were found in it (in its reasoning, say), unless
      only the reasoning is asked for.
    * `no_claims`: it answers, and makes no claim.
    * `unverified`: it has claims, and nobody said of all of them whether they are facts.
    * `scored`: every claim has a label.
    """

    id: str
    question_id: str
    state: str
    labels: tuple[str, ...] = ()
    sentences: tuple[int | None, ...] = ()
    outcome: str | None = None
    outcome_failed: bool = False
    no_gold: bool = False  # there was no gold answer to compare its own with
    failed: bool = False  # a failure is recorded on it, wherever
    confidence: float | None = None  # of the response
    claim_confidence: tuple[float | None, ...] = ()  # of each claim
    answerable: bool | None = None
    step: int | None = None
    off_subject: tuple[bool | None, ...] = ()
    unparsed: int = 0  # how many of its claims their judge could not read
    extracted: bool = False  # sentences or claims were found, so an extractor has run

    @property
    def supported(self) -> int:
        return sum(label in SUPPORTED for label in self.labels)

    @property
    def wrong(self) -> int:
        return sum(label in REFUTED for label in self.labels)

    @property
    def supported_on_subject(self) -> int | None:
        """Its supported claims that are about what was asked; None where that is not known of
        each claim.
        """
        if None in self.off_subject or len(self.off_subject) < len(self.labels):
            return None
        return sum(
            label in SUPPORTED and not off
            for label, off in zip(self.labels, self.off_subject, strict=True)
        )

    @property
    def accuracy(self) -> float | None:
        """The share of its claims that are supported; None without claims."""
        return self.supported / len(self.labels) if self.labels else None


def read_rows(
    path: Path | str, sections: Sequence[str] = (), confidence: str = "tokens"
) -> list[Row]:
    """Read the feedback in a JSONL file, or a run's folder, one row at a time; only the reduced
    rows are kept.

    Args:
        sections: count only claims of these sections ("think", "answer", "body"); by default all
        that were extracted.
        confidence: "tokens" for the mean probability of the answer's tokens, or the aspect of
        the verdicts whose `p` is
            to be read as a confidence ("truth", "factuality", …).

    `questions.jsonl` beside the file, where there is one, says which questions are answerable.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    if unknown := [section for section in sections if section not in SECTIONS]:
        raise WorkbenchError(f"no section '{unknown[0]}': choose of {', '.join(SECTIONS)}")
    file = file_of(path)
    answerable = _answerable(file.with_name("questions.jsonl"))
    rows = list(each_row(file, lambda stored: reduce_row(stored, answerable, sections, confidence)))
    if not rows and file.stat().st_size:
        raise WorkbenchError(f"{file}: no feedback row in it, as `workbench score` writes them")
    return rows


def each_row(file: Path, read: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    """What `read` makes of each stored row of a file, one at a time.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    for number, stored in enumerate(iter_rows(file), start=1):
        if stored.get("schema", SCHEMA) != SCHEMA:
            raise WorkbenchError(
                f"{file}: row {number} is of schema {stored['schema']!r}, and this version reads"
                f" {SCHEMA}"
            )
        try:
            yield read(stored)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise WorkbenchError(
                f"{file}: row {number} is not a feedback row as `workbench score` writes it:"
                f" {error!r}"
            ) from error


def file_of(path: Path | str) -> Path:
    """The file of feedback that a path names: itself or, of a run's folder, its rollouts."""
    path = Path(path)
    return Path(*place(path)) if path.is_dir() else path


def rows_of(
    feedbacks: Iterable[Feedback], sections: Sequence[str] = (), confidence: str = "tokens"
) -> list[Row]:
    """Feedback in memory as rows."""
    reduced = []
    for feedback in feedbacks:
        question = feedback.response.question
        flag = _flag(question.meta)
        answerable = {} if flag is None else {question.id: flag}
        reduced.append(reduce_row(feedback.to_row(), answerable, sections, confidence))
    return reduced


def reduce_row(
    stored: Mapping[str, Any],
    answerable: Mapping[str, bool],
    sections: Sequence[str] = (),
    confidence: str = "tokens",
) -> Row:
    """One stored row as a `Row`; a claim may carry its label itself, as a row given for replay
    does.
    """
    question = str(
        stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    )
    claims = [
        claim
        for claim in stored.get("claims") or ()
        if not sections or claim.get("section", "body") in sections
    ]
    verdicts = stored.get("verdicts") or ()
    labels = [_label(claim, position, verdicts) for position, claim in enumerate(claims)]
    outcome, outcome_failed, no_gold = _outcome(stored, verdicts)
    state = _state(stored, labels, outcome, refusable=set(sections) != {"think"})
    known = state == "scored"
    return Row(
        id=str(stored.get("id", "")),
        question_id=question,
        state=state,
        labels=tuple(label or "" for label, _ in labels) if known else (),
        sentences=tuple(claim.get("sentence") for claim in claims) if known else (),
        outcome=None if stored.get("error") else outcome,
        outcome_failed=outcome_failed,
        no_gold=no_gold,
        failed=failed(stored),
        confidence=(
            _token_confidence(stored) if confidence == "tokens" else _p(verdicts, confidence)
        ),
        claim_confidence=(
            tuple(_p(verdicts, confidence, _target(c, i)) for i, c in enumerate(claims))
            if known
            else ()
        ),
        answerable=answerable.get(question),
        step=stored.get("step"),
        off_subject=(
            tuple(_is_off_subject(claim, i, verdicts) for i, claim in enumerate(claims))
            if known
            else ()
        ),
        unparsed=(
            sum(UNPARSED in unjudged(_fact(claim, i, verdicts)) for i, claim in enumerate(claims))
            if known
            else 0
        ),
        extracted=bool(stored.get("sentences") or stored.get("claims")),
    )


def _target(claim: Mapping[str, Any], position: int) -> str:
    return f"claim:{claim.get('id', position)}"


def _label(
    claim: Mapping[str, Any], position: int, verdicts: Sequence[Mapping[str, Any]]
) -> tuple[str | None, bool]:
    """The claim's label, or None and whether that is a failure, or a label that is not declared,
    rather than no verdict.
    """
    fact = _fact(claim, position, verdicts)
    label = fact.get("label")
    if label in CLAIM_LABELS and not fact.get("error"):
        return str(label), False
    return None, label is not None or bool(fact.get("error"))


def _fact(
    claim: Mapping[str, Any], position: int, verdicts: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The verdict on a claim's truth; without one, the claim itself, which may carry its own
    label.
    """
    target = _target(claim, position)
    return next(
        (v for v in verdicts if v["target"] == target and v.get("aspect", "fact") == "fact"), claim
    )


def _is_off_subject(
    claim: Mapping[str, Any], position: int, verdicts: Sequence[Mapping[str, Any]]
) -> bool | None:
    """Whether a claim is about another subject than the one asked for: a verdict of the aspect
    "subject" says so. Without one, a claim of the lowest informativeness, repeated or useless,
    counts as such, unless its judge could not read it; one without a rating is not known."""
    target, fact = _target(claim, position), _fact(claim, position, verdicts)
    subject = next(
        (
            v.get("label")
            for v in verdicts
            if v["target"] == target and v.get("aspect") == "subject"
        ),
        None,
    )
    if subject is not None:
        return subject == "other"
    rating = fact.get("informativeness")
    return None if rating is None else rating == USELESS and UNPARSED not in unjudged(fact)


def _outcome(
    stored: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]
) -> tuple[str | None, bool, bool]:
    """The outcome or None, whether finding it failed, and whether there was no gold answer."""
    verdict = next((v for v in verdicts if v["target"] == "outcome"), None)
    label = verdict.get("label") if verdict else stored.get("outcome")
    error = verdict.get("error") if verdict else None
    if label in OUTCOMES and not error:
        return str(label), bool(stored.get("error")), False
    lacking = (error or {}).get("kind") in LACKING
    broken = bool(
        stored.get("error")
        or (error and not lacking)
        or (label is not None and label not in OUTCOMES)
    )
    return None, broken, lacking and not broken


def _state(
    stored: Mapping[str, Any],
    labels: Sequence[tuple[str | None, bool]],
    outcome: str | None,
    *,
    refusable: bool = True,
) -> str:
    """`refusable` is false where only the thinking is looked at: a refusal behind it takes
    nothing back.
    """
    if not judged(stored):
        return "not_judged"
    missing = [broken for label, broken in labels if label is None]
    if stored.get("error") or any(missing):
        return "failed"
    if refusable and _refuses(stored, outcome):
        return "abstained"
    if missing:
        return "unverified"
    return "scored" if labels else "no_claims"


def _refuses(stored: Mapping[str, Any], outcome: str | None) -> bool:
    if outcome is None:
        return is_abstention(stored.get("response") or "", prefill=stored.get("prefill") or "")
    return outcome == "uncertain"


def _token_confidence(stored: Mapping[str, Any]) -> float | None:
    """The mean probability of the tokens of the final answer, of all tokens where it is not
    found *(ours)*.

    TruthRL (arXiv 2509.25760, figure 5) groups answers by a confidence that it does not define.
    """
    tokens, text = stored.get("tokens") or {}, stored.get("response") or ""
    logprobs, offsets = tokens.get("logprobs") or (), tokens.get("offsets") or ()
    if not logprobs or len(logprobs) != len(offsets):
        return None
    answer = final_answer(text, prefill=stored.get("prefill") or "")
    start = text.rfind(answer) if answer else -1
    within = [
        logprob
        for logprob, (low, high) in zip(logprobs, offsets, strict=True)
        if start >= 0 and answer and low < start + len(answer) and high > start
    ]
    chosen = within or logprobs
    # A log-probability above 0 is none, and neither is NaN.
    return (
        sum(map(math.exp, chosen)) / len(chosen)
        if all(logprob <= 0 for logprob in chosen)
        else None
    )


def _p(verdicts: Sequence[Mapping[str, Any]], aspect: str, target: str = "") -> float | None:
    """The `p` of the first sound verdict of that aspect on `target`, or on the response as a
    whole.
    """
    wanted = (target,) if target else ("response", "outcome")
    sound = (
        v
        for v in verdicts
        if v["target"] in wanted and v.get("aspect") == aspect and not v.get("error")
    )
    return next((v["p"] for v in sound if v.get("p") is not None and math.isfinite(v["p"])), None)


def _answerable(questions: Path) -> dict[str, bool]:
    if not questions.exists():
        return {}
    return dict(_flags(iter_rows(questions)))


def _flags(questions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    for question in questions:
        if (flag := _flag(question.get("meta") or {})) is not None:
            yield question["id"], flag


def _flag(meta: Mapping[str, Any]) -> bool | None:
    """What a question's data set says; of the closed world's questions, those on well-known
    people are answerable.
    """
    if "answerable" in meta:
        return bool(meta["answerable"])
    return meta["tier"] == "known" if "tier" in meta else None
