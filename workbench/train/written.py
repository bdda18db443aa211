"""Answers that a judge has written for a policy to learn from, kept as they came, failures among
them.

What was written once is not asked for again: a training that was killed goes on with the same
rows, and what was asked before a kill stands in the judge's cache.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench.credit.tokens import prefill
from workbench.failures import TooManyFailures, too_many
from workbench.judge.outlines import Write
from workbench.policy import load_tokenizer
from workbench.store import Store, iter_feedback
from workbench.types import Feedback, Question

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
        _check(found, max_failed)
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


def _check(found: Sequence[Feedback], max_failed: float) -> None:
    why = [feedback.error.message for feedback in found if feedback.error is not None]
    if too_many(len(why), len(found), max_failed):
        raise TooManyFailures(
            f"{len(why)} of {len(found)} answers could not be written ({why[0]}): mend that and run"
            " the same command again, or raise max_failed"
        )
