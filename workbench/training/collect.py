"""Graded samples of a policy, kept as they come: what rules make rows of. A killed collection
goes on where it was.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench.credit.tokens import prefill
from workbench.judge.outlines import Write
from workbench.policies.generate import Sampling, generate
from workbench.policies.load import load_policy, load_tokenizer
from workbench.runs.folder import policy_hash
from workbench.runs.store import ROLLOUTS, Store, iter_feedback
from workbench.training.recorder import reason, reward_of
from workbench.training.rows import keep_identity
from workbench.training.settings import Sampling as Settings
from workbench.training.stage import Job
from workbench.types import LACKING, Feedback, Grade, Question, WorkbenchError
from workbench.util.failures import check_failed
from workbench.util.jsonl import iter_rows, repair, truncate_after_step

SAMPLES = "samples"  # the folder of a stage's samples, in the stage's own
IDENTITY = "collect.json"  # in that folder: whose samples they are, and of what


def collect(
    policy: str,
    questions: Sequence[Question],
    grade: Grade,
    out: Path,
    how: Sampling,
    *,
    method: str | None,
    chunk: int = 64,
    max_failed: float = 0.2,
) -> list[Feedback]:
    """`how.samples` graded responses of `policy` to every question, recorded in the folder
    `out`; what is there is kept.

    So many questions as `chunk` says are sampled, graded and written at a time; rows carry its
    number, from 1, as their step. What is sampled in a chunk depends on `how.seed` and that
    number.

    Raises:
        WorkbenchError: no questions, or one twice, or the folder holds samples of something else.
        TooManyFailures: more than `max_failed` of a chunk's responses have no reward of
        `method`; or, where that is None and
            nothing is paid, could not be graded at all.
    """
    if not questions:
        raise WorkbenchError("no questions to sample: choose another bench, split or kinds")
    if len({question.id for question in questions}) < len(questions):
        raise WorkbenchError("a question's id is there twice: give each question once")
    # a policy that lies in the run goes with it wherever the run is moved
    whose = policy_hash(policy) or policy
    identity = {
        "policy": whose,
        "questions": [question.id for question in questions],
        **vars(how),
        "chunk": chunk,
    }
    keep_identity(out, IDENTITY, identity, "other samples", began=(out / ROLLOUTS).exists())
    chunks = [questions[at : at + chunk] for at in range(0, len(questions), chunk)]
    done = _whole(out, [len(part) * how.samples for part in chunks])
    if done < len(chunks):
        loaded = load_policy(policy)
        with Store(out) as store:
            for number, part in enumerate(chunks[done:], start=done + 1):
                seed = random.Random(f"collect-{how.seed}-{number}").randrange(2**32)
                drawn = replace(how, seed=seed)
                feedbacks = grade(generate(loaded, part, step=number, **vars(drawn)))
                _check_graded(feedbacks, method, max_failed)
                store.append(feedbacks)
                store.sync()
                print(
                    f"sampled {min(number * chunk, len(questions))} of {len(questions)} questions",
                    file=sys.stderr,
                )
    return list(iter_feedback(out))


def collect_in_stage(
    job: Job,
    questions: Sequence[Question],
    grade: Grade,
    sampling: Settings,
    samples: int,
    *,
    method: str | None,
    seed: int | None = None,
) -> list[Feedback]:
    """`collect` from the policy that a stage starts from, in the stage's folder; `seed` is the
    job's by default."""
    how = sampling.decoding(job.seed if seed is None else seed, samples)
    return collect(
        job.start,
        questions,
        grade,
        job.out / SAMPLES,
        how,
        method=method,
        max_failed=sampling.max_failed,
    )


def _whole(out: Path, sizes: Sequence[int]) -> int:
    """How many chunks, from the first, have all their rows; what is recorded after them is cut
    off.
    """
    path = out / ROLLOUTS
    if not path.exists():
        return 0
    repair(path)
    rows = Counter(row["step"] for row in iter_rows(path))
    whole = [rows[number] == size for number, size in enumerate(sizes, start=1)]
    done = [*whole, False].index(False)
    truncate_after_step(path, done)
    return done


def ungraded(feedback: Feedback) -> str | None:
    """Why nothing is known of a sample: its own error, or that of its verdicts where all of them
    failed; None otherwise. One failure among many verdicts, as a long answer may have, leaves
    the rest of use."""
    if feedback.error is not None and feedback.error.kind not in LACKING:
        return feedback.error.message
    errors = [
        verdict.error
        for verdict in feedback.verdicts
        if verdict.error is None or verdict.error.kind not in LACKING
    ]
    return errors[0].message if errors and errors[0] and all(errors) else None


def _check_graded(feedbacks: Sequence[Feedback], method: str | None, max_failed: float) -> None:
    if method is None:
        unscored = [why for feedback in feedbacks if (why := ungraded(feedback)) is not None]
    else:
        unscored = [
            reason(feedback, method)
            for feedback in feedbacks
            if reward_of(feedback, method) is None
        ]
    check_failed(unscored, len(feedbacks), max_failed, "samples could not be graded")


WRITTEN = "written"  # the folder of what was written, in a stage's own


def written(
    write: Write, questions: Sequence[Question], policy: str, out: Path, max_failed: float
) -> list[Feedback]:
    """What `write` answers to the questions, as `policy` would say it after its own prompt,
    recorded in the folder `out`.

    Raises:
        TooManyFailures: more than `max_failed` of the answers could not be written. Nothing is
        recorded, and what was
            answered stands in the judge's cache.
    """
    if not out.exists():
        opened = prefill(load_tokenizer(policy))
        found = [_closing(feedback, opened) for feedback in write(questions)]
        why = [feedback.error.message for feedback in found if feedback.error is not None]
        check_failed(why, len(found), max_failed, "answers could not be written")
        partial = out.with_name(f".{out.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        with Store(partial) as store:
            store.append(found)
            store.sync()
        os.replace(partial, out)  # the whole record, or none of it
    return list(iter_feedback(out))


def _closing(feedback: Feedback, opened: str) -> Feedback:
    """The answer after a prompt that opens the thinking: it is closed before the answer, which
    would else be a thought.
    """
    if feedback.error is not None or not opened.lower().startswith("<think>"):
        return feedback
    response = feedback.response
    before = "</think>\n\n"
    moved = tuple((start + len(before), end + len(before)) for start, end in response.offsets)
    text = replace(
        response, text=before + response.text, offsets=((0, len(before)), *moved), prefill=opened
    )
    return replace(feedback, response=text)
