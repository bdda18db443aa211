"""Sampling the boundary of a policy's knowledge (TruthRL, arXiv 2509.25760, section 3.2), also
as a stage of a training.

The samples of a question depend on the policy, the question, how they are drawn and the seed,
and on nothing that is asked beside it: so a probe that was killed goes on with the next
question, and ends as an uninterrupted one would have.
"""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.methods.bench import Bench
from workbench.methods.truthrl.boundary import out_of_knowledge, read_probe
from workbench.metrics import outcome_of
from workbench.metrics.boundary import LONGEST, UNCERTAIN, Probed, Sample, boundary_report
from workbench.pipeline import assemble
from workbench.policies.generate import Policy, Sampling, generate
from workbench.policies.load import load_policy
from workbench.text import final_answer, normalise
from workbench.training.grpo_config import GRPO, question_order
from workbench.training.stage import Job, Stage, Status
from workbench.types import Checks, Failure, Feedback, Grade, Question, Response, WorkbenchError
from workbench.util.config import check_values, setting
from workbench.util.failures import TooManyFailures, too_many
from workbench.util.jsonl import encode, iter_rows, open_append, repair, write_json

FILE, REPORT = "probe.jsonl", "report.json"
CHUNK = 16  # questions that are graded together and lost by a kill at most
TOLD_EVERY = 10.0  # seconds

# Chunks of questions -> the samples of each of their questions, chunk by chunk in the same order.
Sampler = Callable[[Iterable[list[Question]]], Iterator[list[tuple[Sample, ...]]]]


@dataclass(frozen=True)
class Probing:
    """How a training finds out what the policy cannot know."""

    probe_samples: int = setting(
        256,
        "samples of each question, none correct: it is out of knowledge; 0: the judge's own check"
        " says, in the world exactly",
        least=0,
    )  # (appendix)


def probe_questions(
    sampler: Sampler,
    questions: Sequence[Question],
    out: Path,
    k: int,
    shown: Callable[[Question], int | None] = lambda question: None,
    max_failed: float = 0.2,
) -> None:
    """Record k graded samples of each question, as `sampler` draws them, in `probe.jsonl` of
    `out`, after what is there.

    Raises:
        WorkbenchError: the file holds other questions or other numbers of samples.
        TooManyFailures: a larger share than `max_failed` of the samples could not be graded.
    """
    rows = recorded(out, questions, k)
    repair(out / FILE)
    failed, told, done = sum(row.count(None) for row in rows), time.monotonic(), len(rows)
    chunks = [
        list(questions[start : start + CHUNK]) for start in range(done, len(questions), CHUNK)
    ]
    for chunk, drawn in zip(chunks, sampler(chunks), strict=True):
        found = [
            Probed(asked.id, samples, shown(asked))
            for asked, samples in zip(chunk, drawn, strict=True)
        ]
        failed, done = failed + sum(row.count(None) for row in found), done + len(found)
        if too_many(failed, done * k, max_failed):
            raise TooManyFailures(
                f"{failed} of {done * k} samples could not be graded: mend that and run the same"
                " command again"
            )
        with open_append(out / FILE) as file:
            file.write(b"".join(encode(row.to_row()) for row in found))
            file.flush()
            os.fsync(file.fileno())
        if time.monotonic() - told >= TOLD_EVERY:
            told = time.monotonic()
            print(f"probing: {done:,} of {len(questions):,} questions", file=sys.stderr)


def recorded(out: Path, questions: Sequence[Question], k: int) -> list[Probed]:
    """What `probe.jsonl` of `out` holds of these questions, k samples each, from the first on.

    Raises:
        WorkbenchError: it holds anything else.
    """
    if not (out / FILE).exists():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unfinished last line is reported when it is cut off
        stored = list(iter_rows(out / FILE))
    try:
        rows = [Probed.from_row(row) for row in stored]
    except (KeyError, TypeError, IndexError) as error:
        raise WorkbenchError(
            f"'{out / FILE}' has a row that no probe wrote ({error!r}): remove that file"
        ) from error
    wanted = [(question.id, k) for question in questions[: len(rows)]]
    if [(row.question_id, len(row.samples)) for row in rows] != wanted:
        raise WorkbenchError(
            f"'{out / FILE}' holds other questions or samples than are to be probed: remove that"
            " file"
        )
    return rows


def here(policy: Policy, grade: Grade, how: Sampling) -> Sampler:
    """Return a sampler that answers and grades questions in this process."""
    return lambda chunks: (
        samples_of(grade, answers(policy, chunk, how), how.samples) for chunk in chunks
    )


def answers(
    policy: Policy, questions: Sequence[Question], how: Sampling
) -> list[list[Response] | Failure]:
    """The sampled responses to each question. Its seed depends on the question alone."""
    seeds = tuple(
        random.Random(f"probe-{how.seed}-{question.id}").randrange(2**32) for question in questions
    )
    drawn = generate(policy, questions, **asdict(replace(how, seeds=seeds)))
    return [drawn[at : at + how.samples] for at in range(0, len(drawn), how.samples)]


def samples_of(
    grade: Grade, answered: Sequence[list[Response] | Failure], k: int
) -> list[tuple[Sample, ...]]:
    """The graded samples of each question; of one that could not be answered, k ungraded ones."""
    graded = iter(grade([one for found in answered if isinstance(found, list) for one in found]))
    return [
        tuple(sample_of(next(graded)) for _ in found)
        if isinstance(found, list)
        else (Sample(None, None),) * k
        for found in answered
    ]


def outcomes(checks: Checks) -> Grade:
    """Return a grader that gives each sample its outcome by these checks."""
    return assemble(checks, ["outcome"], {})


def sample_of(feedback: Feedback) -> Sample:
    """A graded response as a vote: what it answers, and what that is worth."""
    outcome = outcome_of(feedback)
    return Sample(None if outcome == UNCERTAIN else answer_of(feedback.response), outcome)


def answer_of(response: Response) -> str:
    """The final answer in its normal form; "" where there is none."""
    return normalise(final_answer(response.text, prefill=response.prefill) or "")[:LONGEST]


def probe_stage(
    probing: Probing, config: GRPO, questions: Sequence[Question], bench: Bench
) -> Stage:
    """A probe of the questions that a training with `config` asks.

    Raises:
        WorkbenchError: settings or checks that cannot work.
    """
    check_values(probing)
    grade = outcomes(bench.checks)
    how = Sampling(config.sampling.max_new_tokens, samples=probing.probe_samples)

    def probe(job: Job) -> Status:
        mine = [
            questions[number]
            for number in dict.fromkeys(question_order(config, len(questions), job.seed))
        ]
        sampler = here(load_policy(job.start), grade, replace(how, seed=job.seed))
        probe_questions(
            sampler, mine, job.out, how.samples, bench.shown, config.sampling.max_failed
        )
        write_json(
            job.out / REPORT, boundary_report(recorded(job.out, mine, how.samples), how.samples)
        )
        return "done"

    return Stage("probe", probe)


def with_probe(checks: Checks, job: Job) -> Checks:
    """Return the checks with an "out_of_knowledge" check that reads the job's probe."""
    found = out_of_knowledge(read_probe(job.stages["probe"] / FILE))
    return replace(checks, verify={**checks.verify, "out_of_knowledge": found})
