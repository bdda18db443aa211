"""The probe of a policy's knowledge (TruthRL, arXiv 2509.25760, section 3.2): graded samples of
each question, and the check "out_of_knowledge" that the knowledge-enhanced reward reads.

A question's samples depend only on the policy, the question, the sampling settings and the seed. So
a probe that was killed continues with the next question and ends as an uninterrupted one.
"""

import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from workbench.metrics import outcome_of
from workbench.metrics.boundary import LONGEST, UNCERTAIN, Probed, Sample
from workbench.pipeline import assemble
from workbench.policies.generate import Policy, Sampling, generate
from workbench.text import final_answer, normalise
from workbench.types import (
    KNOWLEDGE,
    Checked,
    Checks,
    Failure,
    Feedback,
    Grade,
    Question,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)
from workbench.util.failures import check_failed
from workbench.util.grouping import split_batches
from workbench.util.jsonl import encode, iter_rows, open_append, repair

FILE = "probe.jsonl"
CHUNK = 16  # questions graded together, which a kill can lose
PROGRESS_EVERY = 10.0  # seconds

# Chunks of questions -> the samples of each of their questions, chunk by chunk in the same order.
Sampler = Callable[[Iterable[list[Question]]], Iterator[list[tuple[Sample, ...]]]]


def probe_questions(
    sampler: Sampler,
    questions: Sequence[Question],
    out: Path,
    k: int,
    exposures: Callable[[Question], int | None] = lambda question: None,
    max_failed: float = 0.2,
) -> None:
    """Append k graded samples of each question to `probe.jsonl` in `out`, after its existing rows.

    Raises:
        WorkbenchError: the file contains other questions, or another number of samples.
        TooManyFailures: the share of samples that could not be graded exceeds `max_failed`.
    """
    rows = read_rows(out, questions, k)
    repair(out / FILE)
    failed, reported, done = sum(row.count(None) for row in rows), time.monotonic(), len(rows)
    chunks = [list(chunk) for chunk in split_batches(questions[done:], CHUNK)]
    for chunk, sampled in zip(chunks, sampler(chunks), strict=True):
        new = [
            Probed(question.id, samples, exposures(question))
            for question, samples in zip(chunk, sampled, strict=True)
        ]
        failed, done = failed + sum(row.count(None) for row in new), done + len(new)
        why = ["the judge gave no verdict"] * failed
        # before the rows are written: a chunk of failures is sampled again by the next call
        check_failed(why, done * k, max_failed, "samples could not be graded")
        with open_append(out / FILE) as file:
            file.write(b"".join(encode(row.to_row()) for row in new))
            file.flush()
            os.fsync(file.fileno())
        if time.monotonic() - reported >= PROGRESS_EVERY:
            reported = time.monotonic()
            print(f"probing: {done:,} of {len(questions):,} questions", file=sys.stderr)


def read_rows(out: Path, questions: Sequence[Question], k: int) -> list[Probed]:
    """Return the rows of `probe.jsonl` in `out`: k samples of the first questions.

    Raises:
        WorkbenchError: the file has a malformed row, other questions, or another number of
            samples.
    """
    if not (out / FILE).exists():
        return []
    with warnings.catch_warnings(action="ignore"):  # `repair` reports an unfinished last line
        stored = list(iter_rows(out / FILE))
    try:
        rows = [Probed.from_row(row) for row in stored]
    except (KeyError, TypeError, IndexError) as error:
        raise WorkbenchError(
            f"'{out / FILE}' has a row that no probe wrote ({error!r}): remove the file and run the"
            " probe again"
        ) from error
    expected = [(question.id, k) for question in questions[: len(rows)]]
    if [(row.question_id, len(row.samples)) for row in rows] != expected:
        raise WorkbenchError(
            f"'{out / FILE}' holds a probe of other questions or with another number of samples"
            f" than {k}: remove the file, or name another folder"
        )
    return rows


def local_sampler(policy: Policy, grade: Grade, how: Sampling) -> Sampler:
    """Return a sampler that answers and grades questions in this process."""
    return lambda chunks: (
        samples_of(grade, answers(policy, chunk, how), how.samples) for chunk in chunks
    )


def answers(
    policy: Policy, questions: Sequence[Question], how: Sampling
) -> list[list[Response] | Failure]:
    """Return the sampled responses to each question, with a seed that depends on the question."""
    seeds = tuple(
        random.Random(f"probe-{how.seed}-{question.id}").randrange(2**32) for question in questions
    )
    responses = generate(policy, questions, **asdict(replace(how, seeds=seeds)))
    return [list(answered) for answered in split_batches(responses, how.samples)]


def samples_of(
    grade: Grade, answered: Sequence[list[Response] | Failure], k: int
) -> list[tuple[Sample, ...]]:
    """Return the graded samples of each question; k ungraded samples if answering it failed."""
    graded = iter(grade([one for group in answered if isinstance(group, list) for one in group]))
    return [
        tuple(vote(next(graded)) for _ in group)
        if isinstance(group, list)
        else (Sample(None, None),) * k
        for group in answered
    ]


def vote(feedback: Feedback) -> Sample:
    """Return a graded response as a vote for its final answer ("" if it has none)."""
    outcome, response = outcome_of(feedback), feedback.response
    if outcome == UNCERTAIN:
        return Sample(None, outcome)
    answer = normalise(final_answer(response.text, prefill=response.prefill) or "")
    return Sample(answer[:LONGEST], outcome)


def outcomes(checks: Checks) -> Grade:
    """Return a grader that gives each sample its outcome by these checks."""
    return assemble(checks, ["outcome"], {})


KNOWN, UNKNOWN = KNOWLEDGE


def out_of_knowledge(probed: Mapping[str, bool | None]) -> Verify:
    """Return the check "out_of_knowledge" from the result of a probe.

    Args:
        probed: question id -> whether the question is out of knowledge; None if failed samples
            left the probe undecided. For None and for missing questions the verdict is a failure.
    """

    def verdict(question: Question) -> Verdict:
        unknown = probed.get(question.id)
        if unknown is not None:
            label = UNKNOWN if unknown else KNOWN
            return Verdict("response", "out_of_knowledge", label, by="probe")
        why = (
            "has samples that could not be graded and no correct one"
            if question.id in probed
            else "was not probed"
        )
        error = Failure("verify", "not_probed", f"question '{question.id}' {why}")
        return Verdict("response", "out_of_knowledge", by="probe", error=error)

    return lambda batch: [Checked((verdict(response.question),)) for response, _ in batch]


def read_probe(path: Path | str) -> dict[str, bool | None]:
    """Read a `probe.jsonl`; return whether a question is out of knowledge, by question id.

    Raises:
        WorkbenchError: no such file, or a row without this result.
    """
    probed: dict[str, bool | None] = {}
    for number, row in enumerate(iter_rows(path), start=1):
        name, unknown = row.get("question_id"), row.get("ook", "")
        if not isinstance(name, str) or unknown not in (True, False, None):
            raise WorkbenchError(
                f"'{path}': row {number} was not written by `workbench probe`: remove the file and"
                " run the probe again"
            )
        probed[name] = unknown
    return probed
