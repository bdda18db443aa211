"""Read stored feedback as `Row`s, which have only the fields that metrics use."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from workbench.data.files import open_rows, suffix_of
from workbench.data.record import cells
from workbench.runs.store import AFTER, EVALUATION, leads_out, locate
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
    Feedback,
    JsonMapping,
    WorkbenchError,
)
from workbench.util.failures import failed, is_off_subject, judged, unjudged
from workbench.util.jsonl import iter_rows

T = TypeVar("T")
STATES = ("scored", "no_claims", "abstained", "failed", "unverified", "not_judged")


@dataclass(frozen=True)
class Row:
    """One stored response, with only the fields that metrics use.

    `state` decides whether claim metrics count the response:

    * `not_judged`: no claims were extracted and no verdict was given.
    * `failed`: the extraction or the verdict on a claim failed. Claim metrics leave out the row.
      (A failed reward, for example, only sets the field `failed`; the claims still count.)
    * `abstained`: the outcome is "uncertain" or, without an outcome, the text declines to answer.
      With `read_rows(path, ["think"])`, only the thinking counts, and no row has this state.
    * `no_claims`: the response is not an abstention, but has no claims.
    * `unverified`: a claim has no verdict on its truth. Claim metrics leave out the row.
    * `scored`: the response has claims, and every claim has a label.
    """

    id: str
    question_id: str
    state: str
    labels: tuple[str, ...] = ()  # of each claim
    sentences: tuple[int | None, ...] = ()  # of each claim
    outcome: str | None = None
    outcome_failed: bool = False
    no_gold: bool = False  # the question has no gold answer
    failed: bool = False  # any failure is recorded on the row
    confidence: float | None = None  # the mean probability of the answer's tokens
    step: int | None = None
    # Of each claim: whether it is about a subject that the question does not ask for, if known.
    off_subject: tuple[bool | None, ...] = ()
    unparsed: int = 0  # claims that the judge could not read
    extracted: bool = False  # there are sentences or claims, so an extractor has run

    @property
    def supported(self) -> int:
        """The number of supported claims."""
        return sum(label in SUPPORTED for label in self.labels)

    @property
    def wrong(self) -> int:
        """The number of incorrect claims."""
        return sum(label in REFUTED for label in self.labels)

    @property
    def supported_on_subject(self) -> int | None:
        """The number of supported claims about the subject that the question asks for.

        None if it is not known for each claim whether it is about this subject.
        """
        if None in self.off_subject or len(self.off_subject) < len(self.labels):
            return None
        return sum(
            label in SUPPORTED and not off
            for label, off in zip(self.labels, self.off_subject, strict=True)
        )

    @property
    def accuracy(self) -> float | None:
        """The share of claims that are supported; None without claims."""
        return share(self.supported, len(self.labels))


def read_rows(path: Path | str, sections: Collection[str] = ()) -> list[Row]:
    """Return the rows of a feedback file, or of a run's folder, as `Row`s.

    Args:
        path: the file or folder. For a folder, the evaluation after training is read or, without
            one, the training rollouts.
        sections: count only claims in these sections of the response ("think", "answer", "body");
            by default all.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    if unknown := [section for section in sections if section not in SECTIONS]:
        raise WorkbenchError(f"no section '{unknown[0]}': choose from {', '.join(SECTIONS)}")
    file = file_of(path)
    rows = list(each_row(file, lambda stored: reduce_row(stored, sections)))
    if not rows and file.stat().st_size:
        raise WorkbenchError(
            f"{file} has no feedback rows: name a file that `workbench score` wrote"
        )
    return rows


def each_row(file: Path, read: Callable[[JsonMapping], T]) -> Iterator[T]:
    """Apply `read` to each stored row of a file, one at a time, and yield the results.

    Raises:
        WorkbenchError: there is no such file, or a line is not a feedback row.
    """
    for number, stored in enumerate(_stored_rows(file), start=1):
        if stored.get("schema", SCHEMA) != SCHEMA:
            raise WorkbenchError(
                f"{file}: row {number} has schema {stored['schema']!r}, but this version reads"
                f" {SCHEMA}: read the file with the version that wrote it, or score it again"
            )
        try:
            yield read(stored)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise WorkbenchError(
                f"{file}: row {number} is not a feedback row as `workbench score` writes it"
                f" (id {stored.get('id')!r}, {error!r}): remove the row, or score the file again"
            ) from error


def _stored_rows(file: Path) -> Iterator[JsonMapping]:
    if suffix_of(file) == ".jsonl":
        yield from iter_rows(file)  # its last line may be unfinished
    else:
        for _, row in open_rows(file)[1]:
            yield {} if isinstance(row, str) else cells(row, {})


def file_of(path: Path | str, *, rollouts: bool = False) -> Path:
    """Return the feedback file for a path, which is a file or the folder of a run.

    A file is returned unchanged. For a folder, the file of the evaluation after training is
    returned. If there is no evaluation, or if `rollouts` is True, the file of training rollouts is
    returned.
    """
    path = Path(path)
    evaluated = path / EVALUATION / AFTER
    if not rollouts and evaluated.is_file() and not leads_out(evaluated, path):
        return evaluated
    return Path(*locate(path)) if path.is_dir() else path


def check_one_policy(path: Path | str, steps: Iterable[int | None]) -> None:
    """Check that the rows of a file come from one policy.

    Args:
        path: the file, for the error message.
        steps: the training step of each row; None is ignored.

    Raises:
        WorkbenchError: the rows are from several training steps and so from several policies.
    """
    if (count := len({*steps} - {None})) > 1:
        raise WorkbenchError(
            f"{path} has training rollouts of {count} steps, each with another policy: compare"
            " the answers of evaluations, which `workbench evaluate RUN --split test --out"
            " FILE.jsonl` writes, or the stored evaluations with `workbench compare RUN RUN`"
        )


def rows_of(feedbacks: Iterable[Feedback], sections: Collection[str] = ()) -> list[Row]:
    """Convert feedback in memory to `Row`s.

    Args:
        sections: count only claims in these sections of the response ("think", "answer", "body");
            by default all.
    """
    return [reduce_row(feedback.to_row(), sections) for feedback in feedbacks]


def reduce_row(stored: JsonMapping, sections: Collection[str] = ()) -> Row:
    """Convert one stored feedback row to a `Row`.

    A claim is labelled by its verdict or, without a verdict, by its own field `label`, which
    hand-labelled rows have.

    Args:
        sections: count only claims in these sections of the response ("think", "answer", "body");
            by default all.
    """
    question = str(
        stored["question_id"] if stored.get("question_id") not in (None, "") else stored["id"]
    )
    counted = [
        claim
        for claim in stored.get("claims") or ()
        if not sections or claim.get("section", "body") in sections
    ]
    verdicts = stored.get("verdicts") or ()
    claims = [_claim(claim, position, verdicts) for position, claim in enumerate(counted)]
    outcome, outcome_failed, no_gold = _outcome(stored, verdicts)
    if outcome is None:
        abstains = is_abstention(stored.get("response") or "", prefill=stored.get("prefill") or "")
    else:
        abstains = outcome == "uncertain"
    # if only the thinking counts, an abstention in the answer does not change it
    state = _state(stored, claims, abstains and set(sections) != {"think"})
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
    """The fields of a stored claim that metrics use."""

    label: str | None
    sentence: int | None
    broken: bool  # the verdict failed, or its label is not declared
    unparsed: bool  # the judge could not read the claim
    off_subject: bool | None  # it is about a subject that the question does not ask for, if known


def _claim(stored: JsonMapping, position: int, verdicts: Sequence[JsonMapping]) -> _Claim:
    """Return the fields of a stored claim.

    The label is that of its verdict or, without a verdict, the label in the claim itself. If the
    claim has no id, `position` is used as its id.
    """
    # claims that another program wrote may have no ids
    target = f"claim:{stored.get('id', position)}"
    own = [verdict for verdict in reversed(verdicts) if verdict["target"] == target]
    by_aspect = {verdict.get("aspect", "fact"): verdict for verdict in own}
    fact = by_aspect.get("fact", stored)
    label, error = fact.get("label"), fact.get("error")
    known = label in CLAIM_LABELS and not error
    unparsed = UNPARSED in unjudged(fact)
    off_subject = is_off_subject(fact, by_aspect.get("subject", {}))
    broken = not known and (label is not None or bool(error))
    return _Claim(label if known else None, stored.get("sentence"), broken, unparsed, off_subject)


def _outcome(stored: JsonMapping, verdicts: Sequence[JsonMapping]) -> tuple[str | None, bool, bool]:
    """Return (outcome or None, whether grading failed, whether the gold answer is missing)."""
    verdict = next((v for v in verdicts if v["target"] == "outcome"), None)
    label = verdict.get("label") if verdict else stored.get("outcome")
    error = verdict.get("error") if verdict else None
    if label in OUTCOMES and not error:
        return str(label), bool(stored.get("error")), False
    lacking = (error or {}).get("kind") in LACKING
    broken = stored.get("error") or (error and not lacking)
    broken = bool(broken or (label is not None and label not in OUTCOMES))
    return None, broken, lacking and not broken


def _state(stored: JsonMapping, claims: Sequence[_Claim], abstains: bool) -> str:
    if not judged(stored):
        return "not_judged"
    # one unknown label would bias every rate of the row
    if stored.get("error") or any(claim.broken for claim in claims):
        return "failed"
    if abstains:
        return "abstained"
    if any(claim.label is None for claim in claims):
        return "unverified"
    return "scored" if claims else "no_claims"


def _token_confidence(stored: JsonMapping) -> float | None:
    """Return the mean probability of the tokens of the final answer *(ours)*.

    If no final answer is found, all tokens count. Return None without usable log-probabilities.
    TruthRL (arXiv 2509.25760, figure 5) groups answers by a confidence that the paper does not
    define.
    """
    tokens, text = stored.get("tokens") or {}, stored.get("response") or ""
    logprobs, offsets = tokens.get("logprobs") or (), tokens.get("offsets") or ()
    if not logprobs or len(logprobs) != len(offsets):
        return None
    answer = final_answer(text, prefill=stored.get("prefill") or "")
    # the last occurrence: the thinking may mention the answer earlier
    start = text.rfind(answer) if answer else -1
    end = start + len(answer) if answer and start >= 0 else -1  # -1: no token is within
    within = [
        logprob
        for logprob, (low, high) in zip(logprobs, offsets, strict=True)
        if low < end and high > start
    ]
    used = within or logprobs
    if not all(logprob <= 0 for logprob in used):  # NaN, or not a log-probability
        return None
    return sum(map(math.exp, used)) / len(used)


def share(part: float, whole: int) -> float | None:
    """Return `part / whole`, or None if `whole` is 0."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None if there are no values."""
    return share(sum(values), len(values))
