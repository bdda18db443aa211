"""A stored feedback row, reduced to what the metrics need of it: labels, sentences, outcome,
confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from workbench.runs.store import locate
from workbench.text import final_answer, is_abstention
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
from workbench.util.failures import failed, judged, unjudged
from workbench.util.jsonl import iter_rows

T = TypeVar("T")
STATES = ("scored", "no_claims", "abstained", "failed", "unverified", "not_judged")


@dataclass(frozen=True)
class Row:
    """One response. `labels[i]`, `sentences[i]` and `off_subject[i]` are claim i's label, its
    sentence, and whether it is about something else than what was asked (None = not known).

    `state` says whether claim metrics count it:

    * `not_judged`: nobody has read it for claims or given a verdict on it
      (`workbench.util.failures.judged`).
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
    confidence: float | None = None  # the mean probability of the answer's tokens
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


def read_rows(path: Path | str, sections: Sequence[str] = ()) -> list[Row]:
    """Read the feedback in a JSONL file, or a run's folder, one row at a time; only the reduced
    rows are kept.

    Args:
        sections: count only claims of these sections ("think", "answer", "body"); by default all
        that were extracted.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    if unknown := [section for section in sections if section not in SECTIONS]:
        raise WorkbenchError(f"no section '{unknown[0]}': choose of {', '.join(SECTIONS)}")
    file = file_of(path)
    rows = list(each_row(file, lambda stored: reduce_row(stored, sections)))
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
    return Path(*locate(path)) if path.is_dir() else path


def rows_of(feedbacks: Iterable[Feedback], sections: Sequence[str] = ()) -> list[Row]:
    """Feedback in memory as rows."""
    return [reduce_row(feedback.to_row(), sections) for feedback in feedbacks]


def reduce_row(stored: Mapping[str, Any], sections: Sequence[str] = ()) -> Row:
    """One stored row as a `Row`; a claim may carry its label itself, as a row given for replay
    does.
    """
    question = str(
        stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    )
    chosen = [
        claim
        for claim in stored.get("claims") or ()
        if not sections or claim.get("section", "body") in sections
    ]
    verdicts = stored.get("verdicts") or ()
    claims = [_claim(claim, position, verdicts) for position, claim in enumerate(chosen)]
    outcome, outcome_failed, no_gold = _outcome(stored, verdicts)
    # A refusal after the thinking takes nothing back of the thinking itself.
    refuses = set(sections) != {"think"} and _refuses(stored, outcome)
    state = _state(stored, claims, refuses)
    scored = claims if state == "scored" else []
    return Row(
        id=str(stored.get("id", "")),
        question_id=question,
        state=state,
        labels=tuple(claim.label or "" for claim in scored),
        sentences=tuple(claim.sentence for claim in scored),
        outcome=None if stored.get("error") else outcome,
        outcome_failed=outcome_failed,
        no_gold=no_gold,
        failed=failed(stored),
        confidence=_token_confidence(stored),
        step=stored.get("step"),
        off_subject=tuple(claim.off_subject for claim in scored),
        unparsed=sum(claim.unparsed for claim in scored),
        extracted=bool(stored.get("sentences") or stored.get("claims")),
    )


class _Claim(NamedTuple):
    """What a stored claim comes to. `broken`: judging it failed, or its label is not a declared
    one. `off_subject`: whether it is about another subject than the one asked for, if known."""

    label: str | None
    sentence: int | None
    broken: bool
    unparsed: bool
    off_subject: bool | None


def _claim(
    stored: Mapping[str, Any], position: int, verdicts: Sequence[Mapping[str, Any]]
) -> _Claim:
    """A stored claim with the verdict on its truth; without one, the claim may carry its label.

    A verdict of the aspect "subject" says whether it is off the subject. Without one, a claim of
    the lowest informativeness (repeated or useless) is, unless its judge could not read it.
    """
    target = f"claim:{stored.get('id', position)}"
    own = [verdict for verdict in reversed(verdicts) if verdict["target"] == target]
    by_aspect = {verdict.get("aspect", "fact"): verdict for verdict in own}
    fact = by_aspect.get("fact", stored)
    label, error, rating = fact.get("label"), fact.get("error"), fact.get("informativeness")
    known = label in CLAIM_LABELS and not error
    unparsed = UNPARSED in unjudged(fact)
    subject = by_aspect.get("subject", {}).get("label")
    off_subject = None if rating is None else rating == USELESS and not unparsed
    if subject is not None:
        off_subject = subject == "other"
    broken = not known and (label is not None or bool(error))
    return _Claim(label if known else None, stored.get("sentence"), broken, unparsed, off_subject)


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
    broken = stored.get("error") or (error and not lacking)
    broken = bool(broken or (label is not None and label not in OUTCOMES))
    return None, broken, lacking and not broken


def _state(stored: Mapping[str, Any], claims: Sequence[_Claim], refuses: bool) -> str:
    if not judged(stored):
        return "not_judged"
    if stored.get("error") or any(claim.broken for claim in claims):
        return "failed"
    if refuses:
        return "abstained"
    if any(claim.label is None for claim in claims):
        return "unverified"
    return "scored" if claims else "no_claims"


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
    end = start + len(answer) if answer and start >= 0 else -1
    within = [
        logprob
        for logprob, (low, high) in zip(logprobs, offsets, strict=True)
        if low < end and high > start
    ]
    chosen = within or logprobs
    if not all(logprob <= 0 for logprob in chosen):  # NaN, or not a log-probability
        return None
    return sum(map(math.exp, chosen)) / len(chosen)


def share(part: float, whole: int) -> float | None:
    """`part / whole`; None of nothing."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    return share(sum(values), len(values))
