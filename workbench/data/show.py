"""What `workbench data show` prints: a data set in numbers, and its first questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from workbench.data import load
from workbench.types import WorkbenchError


def describe(
    source: str,
    split: str | None = None,
    count: int = 3,
    mapping: str | None = None,
    schema: str | None = None,
) -> dict[str, Any]:
    """`{source, schema, n, kinds, answered, unanswerable, evaluation_only, splits, questions}`,
    with `count` questions.
    """
    questions = load(source, split, mapping=parse_mapping(mapping), schema=schema)
    return {
        "source": source,
        "schema": questions[0].meta["source"],
        "n": len(questions),
        "kinds": dict(Counter(question.kind for question in questions)),
        "answered": sum(bool(question.answers) for question in questions),
        "unanswerable": sum(question.meta.get("answerable") is False for question in questions),
        "evaluation_only": any(question.meta.get("evaluation_only") for question in questions),
        "splits": dict(sorted(Counter(question.meta["split"] for question in questions).items())),
        "questions": [asdict(question) for question in questions[:count]],
    }


def parse_mapping(text: str | None) -> dict[str, str] | None:
    """ "question=prompt,answers=gold" as `{field: column}`; None for None.

    Raises:
        WorkbenchError: a part is not FIELD=COLUMN.
    """
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    if any(
        not field.strip() or not equals or not column.strip() for field, equals, column in parts
    ):
        raise WorkbenchError(
            f"--map {text}: write FIELD=COLUMN, several with commas between, as in"
            " question=prompt,answers=gold"
        )
    return {field.strip(): column.strip() for field, _, column in parts}
