"""Add the passages that an index finds to questions without any: FoRAG trains on these where a
data set, as ELI5, has none.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.experiments.answering.sources import Sources
from workbench.types import Passage, Question, WorkbenchError
from workbench.util.jsonl import encode, replace_rows

BATCH = 256  # questions that are searched for at once
EVERY = 4  # batches between lines of progress


def retrieve(questions: Sequence[Question], sources: Sources, k: int, out: Path) -> dict[str, int]:
    """Write the questions, with up to `k` passages each, to a JSONL file that trainings read,
    whole or not at all.

    A question that has passages keeps them. A question for which nothing is found is left out.

    Returns:
        How many `questions` there were, how many `had` passages, were `retrieved` with some, and
        `found_nothing`.

    Raises:
        WorkbenchError: nothing is found for any question, or `out` exists.
    """
    if out.exists():
        raise WorkbenchError(f"'{out}' is there already: remove it, or name another file")
    counts = Counter({"questions": len(questions), "had": 0, "retrieved": 0, "found_nothing": 0})
    rows = list(_rows(questions, sources, k, counts))
    if not rows:
        raise WorkbenchError(
            "the index has nothing on any of these questions: name another --store"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_rows(out, map(encode, rows))
    return dict(counts)


def _rows(
    questions: Sequence[Question], sources: Sources, k: int, counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    for number, start in enumerate(range(0, len(questions), BATCH), start=1):
        batch = questions[start : start + BATCH]
        bare = [question.text for question in batch if not question.passages]
        found = iter(sources.search(bare, k) if bare else [])
        for question in batch:
            passages = question.passages or tuple(next(found))
            counts[
                "had" if question.passages else "retrieved" if passages else "found_nothing"
            ] += 1
            if passages:
                yield _row(question, passages)
        if number % EVERY == 0:
            done = start + len(batch)
            print(f"searched for {done} of {len(questions)} questions", file=sys.stderr)


def _row(question: Question, passages: Sequence[Passage]) -> dict[str, Any]:
    shown = [
        {name: value for name, value in asdict(passage).items() if name != "score"}
        for passage in passages
    ]
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "title": question.title,
        "kind": question.kind,
        "checklist": list(question.checklist),
        "passages": shown,
    }
