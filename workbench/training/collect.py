"""Sample and grade responses before a training; `pairs` selects training rows from them.

Questions are processed in chunks, and responses are stored after each chunk. If the process is
killed, the next call continues with the first missing chunk.
"""

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
from workbench.training.recorder import error_of, reason, reward_of
from workbench.training.rows import keep_identity
from workbench.training.settings import Sampling as Settings
from workbench.training.stage import Job
from workbench.types import LACKING, Feedback, Grade, Question, WorkbenchError
from workbench.util.failures import check_failed
from workbench.util.grouping import split_batches
from workbench.util.jsonl import iter_rows, repair, truncate_after_step

SAMPLES = "samples"  # subfolder of a stage for its samples
WRITTEN = "written"  # subfolder of a stage for answers that a judge wrote
IDENTITY = "collect.json"  # in the folder of the samples: their policy, questions and settings


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
    """Sample responses to each question, grade and store them, and return the graded responses.

    Questions are processed in chunks. A finished chunk is stored in the folder `out`, and a later
    call does not sample it again. A response's `step` is the number of its chunk, from 1.

    Args:
        policy: folder or hub name.
        how: sampling settings; `how.samples` responses are sampled for each question.
        method: name of the reward that `grade` computes; None if it computes no reward.
        chunk: number of questions in a chunk.
        max_failed: largest accepted share of unusable responses in a chunk, such as responses
            without a reward; `ungraded` defines them.

    Raises:
        WorkbenchError: no questions, duplicate questions, or `out` has samples of another policy,
            other questions or other settings.
        TooManyFailures: more than `max_failed` of a chunk's responses are unusable.
    """
    if not questions:
        raise WorkbenchError("no questions to sample: choose another bench, split or kinds")
    # samples are grouped by question id later, so equal ids would mix two questions
    [(name, times)] = Counter(question.id for question in questions).most_common(1)
    if times > 1:
        raise WorkbenchError(f"{times} questions have the id '{name}': give each question once")
    identity = {
        # a digest of the content, because a policy in the run's folder is moved together with it
        "policy": policy_hash(policy) or policy,
        "questions": [question.id for question in questions],
        **vars(how),
        "chunk": chunk,
    }
    keep_identity(
        out,
        IDENTITY,
        identity,
        "samples of another policy, other questions or other settings",
        began=(out / ROLLOUTS).exists(),
    )
    chunks = split_batches(questions, chunk)
    done = _complete_chunks(out, [len(part) * how.samples for part in chunks])
    if done < len(chunks):
        loaded = load_policy(policy)
        with Store(out) as store:
            for number, part in enumerate(chunks[done:], start=done + 1):
                # from the chunk's number, so that a resumed call samples the same responses
                seed = random.Random(f"collect-{how.seed}-{number}").randrange(2**32)
                sampling = replace(how, seed=seed)
                feedbacks = grade(generate(loaded, part, step=number, **vars(sampling)))
                # checked before storing, so that a failed chunk is sampled and graded again
                unscored = [why for one in feedbacks if (why := ungraded(one, method)) is not None]
                check_failed(unscored, len(feedbacks), max_failed, "samples could not be graded")
                store.append(feedbacks)
                store.sync()  # a chunk that is on the disk is not sampled again
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
    """Sample and grade responses by the initial policy of a stage; return them as `collect` does.

    A stage is one training of a run, such as a cold start.

    Args:
        job: the stage's initial policy, folder and seed. The responses are stored in the subfolder
            "samples" of this folder.
        grade: function that grades responses.
        sampling: sampling settings, with the largest accepted share of unusable responses.
        samples: number of responses per question.
        method: name of the reward that `grade` computes; None if it computes no reward.
        seed: seed for sampling; None for `job.seed`.
    """
    return collect(
        job.start,
        questions,
        grade,
        job.out / SAMPLES,
        sampling.decoding(job.seed if seed is None else seed, samples),
        method=method,
        max_failed=sampling.max_failed,
    )


def _complete_chunks(out: Path, sizes: Sequence[int]) -> int:
    """Return how many chunks are stored completely, counted from the first; delete all later rows.

    Args:
        sizes: number of rows of each chunk when it is complete.
    """
    path = out / ROLLOUTS
    if not path.exists():
        return 0
    repair(path)  # a kill may leave an unfinished last line
    rows = Counter(row["step"] for row in iter_rows(path))
    complete = [rows[number] == size for number, size in enumerate(sizes, start=1)]
    done = [*complete, False].index(False)
    truncate_after_step(path, done)
    return done


def ungraded(feedback: Feedback, method: str | None = None) -> str | None:
    """Return the reason why a graded response cannot be used for training; None if it can.

    * With `method`, a response is unusable if it has no reward by this method. A response without
      claims, such as a refusal, is usable without a reward.
    * Without `method`, a response is unusable if the extraction of its claims failed, or if all of
      its verdicts failed. A check without its input, such as a gold answer, is not a failure.
    """
    if method is not None:
        error = error_of(feedback, method)
        scored = reward_of(feedback, method) is not None or (error and error.kind == "no_claims")
        return None if scored else f"{feedback.response.id}: {reason(feedback, method)}"
    if feedback.error is not None and feedback.error.kind not in LACKING:
        return feedback.error.message
    made = [v for v in feedback.verdicts if not v.error or v.error.kind not in LACKING]
    failures = [verdict.error.message for verdict in made if verdict.error]
    return failures[0] if failures and len(failures) == len(made) else None


def written(
    write: Write, questions: Sequence[Question], policy: str, out: Path, max_failed: float
) -> list[Feedback]:
    """Let a judge write an answer to each question, and return the answers as training data.

    The answers are stored in the folder `out`. If `out` already exists, the stored answers are
    returned, and the judge is not called.

    Args:
        write: calls the judge; returns one `Feedback` per question, with `error` if it failed.
        policy: folder or hub name of the policy to train on the answers; only its tokenizer is
            loaded. If its chat template ends prompts with "<think>", "</think>" is put before each
            answer.
        max_failed: largest accepted share of failed answers.

    Raises:
        TooManyFailures: more than `max_failed` of the answers failed. Nothing is stored.
    """
    if not out.exists():
        prefix = prefill(load_tokenizer(policy))
        answers = [_after_prefill(feedback, prefix) for feedback in write(questions)]
        failures = [feedback.error.message for feedback in answers if feedback.error is not None]
        check_failed(failures, len(answers), max_failed, "answers could not be written")
        partial = out.with_name(f".{out.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        with Store(partial) as store:
            store.append(answers)
            store.sync()
        os.replace(partial, out)  # so `out` is complete or does not exist
    return list(iter_feedback(out))


def _after_prefill(feedback: Feedback, prefix: str) -> Feedback:
    """Return an answer as the continuation of a prompt that ends with `prefix`.

    If `prefix` begins with "<think>", "</think>" is put before the answer. Without it, the answer
    would count as thinking.
    """
    if feedback.error is not None or not prefix.lower().startswith("<think>"):
        return feedback
    response, before = feedback.response, "</think>\n\n"
    moved = ((start + len(before), end + len(before)) for start, end in response.offsets)
    text = replace(
        response, text=before + response.text, offsets=((0, len(before)), *moved), prefill=prefix
    )
    return replace(feedback, response=text)
