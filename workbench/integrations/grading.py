"""What any foreign trainer needs to pay by our methods: a grader from a few settings, questions
from its rows, when to stop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.bench import Bench
from workbench.bench import bench as bench_of
from workbench.checks import Checks
from workbench.config import override
from workbench.data.record import question_of
from workbench.failures import TooManyFailures, too_many
from workbench.recipes import METHODS, configure_method
from workbench.types import Grade, Question, WorkbenchError

# Columns of a data set that say what is known of a question, all of them optional.
COLUMNS = ("id", "question", "answers", "answer", "title", "passages", "checklist", "kind")


@dataclass(frozen=True)
class Grader:
    """A method's name, what grades by it, and what its judge adds to a question."""

    name: str
    grade: Grade
    recognise: Callable[[Question], Question]


def grader(
    recipe: Any, judge: str | Bench | Checks = "tiny", settings: Sequence[str] = ()
) -> Grader:
    """The method, a name or a config, over that judge: a bench or its name, or `Checks`. A bench
    also brings its settings of a method that is given by name; `settings` are
    "method.field=value".

    Raises:
        WorkbenchError: no such method or setting, or a judge that lacks one of the method's
        checks.
    """
    able = bench_of(judge) if isinstance(judge, str) else judge
    checks = able if isinstance(able, Checks) else able.checks
    name, config = configure_method(recipe)
    if isinstance(recipe, str) and not isinstance(able, Checks):
        config = METHODS[name].configure(able.name)
    config = override(config, name, settings)
    return Grader(
        name, METHODS[name].grader(config, checks), checks.recognise or (lambda question: question)
    )


def asked(prompt: Any, row: Mapping[str, Any]) -> Question:
    """The question of a row's columns; without a `question` it is the last user message of the
    prompt, or the whole prompt.

    Raises:
        WorkbenchError: a column that is not what it has to be.
    """
    row = {name: row[name] for name in COLUMNS if row.get(name) is not None}
    text = row.get("question") or (prompt if isinstance(prompt, str) else last(prompt, "user"))
    identity = (
        str(row["id"])
        if "id" in row
        else _digest([text, {name: row[name] for name in row if name != "question"}])
    )
    try:
        return question_of(row, identity, text)
    except ValueError as error:
        raise WorkbenchError(
            f"a column of the data set cannot be read: {error}: rename it, or mend the data set"
        ) from error


def _digest(value: Any) -> str:
    """An id for what has none: equal only where everything is."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def last(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    """The text of the last message of a role; "" if there is none."""
    contents = [
        message["content"]
        for message in messages
        if message["role"] == role and message.get("content")
    ]
    # a list of parts, as of models that take images
    if contents and not isinstance(contents[-1], str):
        return "".join(part.get("text") or "" for part in contents[-1])
    return contents[-1] if contents else ""


def stop_at(max_failed: float, reasons: Sequence[str], graded: int) -> None:
    """Stop where the responses without a reward, whose `reasons` these are, are too large a
    share of those graded together.

    Raises:
        TooManyFailures: they are.
    """
    if too_many(len(reasons), graded, max_failed):
        raise TooManyFailures(
            f"{len(reasons)} of {graded} completions could not be scored ({reasons[0]}): mend that,"
            " or raise max_failed"
        )
