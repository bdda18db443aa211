"""Probe which questions a policy can answer (TruthRL, arXiv 2509.25760, section 3.2).

The probe samples and grades several answers to each question. A question without a correct sample
is out of the policy's knowledge. The check "out_of_knowledge" passes this result to the
knowledge-enhanced reward.

The samples depend only on the policy, the question, the sampling settings and the seed. So a killed
probe continues with the same result as an uninterrupted probe.
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
from workbench.metrics.boundary import ANSWER_CHARACTERS, UNCERTAIN, Probed, Sample
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
CHUNK = 16  # questions sampled, graded and stored at a time; a kill loses at most one chunk
PROGRESS_EVERY = 10.0  # seconds

# Chunks of questions -> for each chunk, the samples of each of its questions, in the same order.
Sampler = Callable[[Iterable[list[Question]]], Iterator[list[tuple[Sample, ...]]]]


def probe_questions(
    sampler: Sampler,
    questions: Sequence[Question],
    out: Path,
    k: int,
    exposures: Callable[[Question], int | None] = lambda question: None,
    max_failed: float = 0.2,
) -> None:
    """Sample and grade each question k times, and append one row per question to `probe.jsonl`.

    Questions that already have a row are skipped.

    Args:
        sampler: samples and grades answers; see `local_sampler`.
        out: folder of `probe.jsonl`.
        k: number of samples per question. `sampler` must return this number.
        exposures: question -> number of training documents that state its answer; None if unknown.
        max_failed: largest accepted share of samples that could not be graded.

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
        # checked before the rows are written, so that the next call samples a failed chunk again
        check_failed(why, done * k, max_failed, "samples could not be graded")
        with open_append(out / FILE) as file:
            file.write(b"".join(encode(row.to_row()) for row in new))
            file.flush()
            os.fsync(file.fileno())
        if time.monotonic() - reported >= PROGRESS_EVERY:
            reported = time.monotonic()
            print(f"probing: {done:,} of {len(questions):,} questions", file=sys.stderr)


def read_rows(out: Path, questions: Sequence[Question], k: int) -> list[Probed]:
    """Return the rows of `probe.jsonl` in the folder `out`: one for each question probed so far.

    The result is [] if there is no file.

    Args:
        questions: all questions of the probe, in the order in which they are probed.
        k: number of samples per question.

    Raises:
        WorkbenchError: the file has a malformed row, other questions, or another number of samples.
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
    """Return a sampler for `probe_questions` that runs the policy in this process.

    The sampler takes an iterable of chunks (lists of questions). For each chunk, it yields a list
    with one tuple of graded samples per question.

    Args:
        grade: grades responses; see `outcomes`.
        how: sampling settings; `how.samples` is the number of samples per question.
    """
    return lambda chunks: (
        samples_of(grade, answers(policy, chunk, how), how.samples) for chunk in chunks
    )


def answers(
    policy: Policy, questions: Sequence[Question], how: Sampling
) -> list[list[Response] | Failure]:
    """Return `how.samples` sampled responses to each question.

    Each question has its own seed, which depends on `how.seed` and the question's id. The result
    never contains a `Failure`. Its type allows one because it is passed to `samples_of`.
    """
    seeds = tuple(
        random.Random(f"probe-{how.seed}-{question.id}").randrange(2**32) for question in questions
    )
    responses = generate(policy, questions, **asdict(replace(how, seeds=seeds)))
    return [list(answered) for answered in split_batches(responses, how.samples)]


def samples_of(
    grade: Grade, answered: Sequence[list[Response] | Failure], k: int
) -> list[tuple[Sample, ...]]:
    """Grade the responses to each question, and return k samples per question.

    Args:
        answered: for each question, its k responses, or a `Failure` if sampling failed. A failure
            gives k samples whose answer and outcome are None.
    """
    graded = iter(grade([one for group in answered if isinstance(group, list) for one in group]))
    return [
        tuple(vote(next(graded)) for _ in group)
        if isinstance(group, list)
        else (Sample(None, None),) * k
        for group in answered
    ]


def vote(feedback: Feedback) -> Sample:
    """Return a graded response as a `Sample`: its final answer and its outcome.

    The answer is normalised. It is "" if the response has no final answer, and None if it abstains.
    The outcome is None if grading failed.
    """
    outcome, response = outcome_of(feedback), feedback.response
    if outcome == UNCERTAIN:
        return Sample(None, outcome)
    answer = normalise(final_answer(response.text, prefill=response.prefill) or "")
    return Sample(answer[:ANSWER_CHARACTERS], outcome)


def outcomes(checks: Checks) -> Grade:
    """Return a function that grades responses by the check "outcome" only, without rewards."""
    return assemble(checks, ["outcome"], {})


KNOWN, UNKNOWN = KNOWLEDGE


def out_of_knowledge(probed: Mapping[str, bool | None]) -> Verify:
    """Return the check "out_of_knowledge" from the result of a probe.

    The check is a function from responses to one verdict on each response. The label is "unknown"
    if the question is out of the policy's knowledge, else "known".

    Args:
        probed: question id -> whether the question is out of knowledge. If the value is None
            (undecided) or missing, the verdict is a failure.
    """

    def verdict(question: Question) -> Verdict:
        unknown = probed.get(question.id)
        if unknown is not None:
            label = UNKNOWN if unknown else KNOWN
            return Verdict("response", "out_of_knowledge", label, by="probe")
        why = (
            "is undecided: some samples could not be graded, and no sample is correct"
            if question.id in probed
            else "was not probed"
        )
        error = Failure("verify", "not_probed", f"question '{question.id}' {why}")
        return Verdict("response", "out_of_knowledge", by="probe", error=error)

    return lambda batch: [Checked((verdict(response.question),)) for response, _ in batch]


def read_probe(path: Path | str) -> dict[str, bool | None]:
    """Read the file of a probe, and return question id -> whether it is out of knowledge.

    The value is None (undecided) if no sample was correct and some samples could not be graded.

    Raises:
        WorkbenchError: there is no such file, or a row has no result.
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
