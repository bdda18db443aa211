"""Questions without passages, with those that an index finds: what FoRAG is trained on where a data set, as ELI5, has none."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.answering.sources import Sources
from workbench.jsonl import encode, replace_rows
from workbench.types import Question, WorkbenchError

EVERY = 1000  # questions between lines of progress


def supply(questions: Sequence[Question], sources: Sources, k: int, out: Path) -> dict[str, int]:
    """Write the questions, with up to `k` passages each, to a JSONL file that trainings read, whole or not at all.

    Passages that a question brings are kept, and nothing is looked for. One for which nothing is found is left out: an answer
    could rest on nothing.

    Returns:
        How many `questions` there were, how many `had` passages, were `supplied` with some, and `found_nothing`.

    Raises:
        WorkbenchError: nothing is found for any question, or `out` is there already.
    """
    if out.exists():
        raise WorkbenchError(f"'{out}' is there already: remove it, or name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    counts = Counter({"questions": len(questions), "had": 0, "supplied": 0, "found_nothing": 0})
    rows = list(_rows(questions, sources, k, counts))
    if not rows:
        raise WorkbenchError("the index has nothing on any of these questions: name another --store")
    replace_rows(out, map(encode, rows))
    return dict(counts)


def _rows(questions: Sequence[Question], sources: Sources, k: int, counts: Counter[str]) -> Iterator[Mapping[str, Any]]:
    for number, question in enumerate(questions, start=1):
        passages = question.passages or tuple(sources.search(question.text, k))
        counts["had" if question.passages else "supplied" if passages else "found_nothing"] += 1
        if number % EVERY == 0:
            print(f"searched for {number} of {len(questions)} questions", file=sys.stderr)
        if passages:
            shown = [{name: value for name, value in asdict(one).items() if name != "score"} for one in passages]
            told = {"id": question.id, "question": question.text, "answers": list(question.answers), "title": question.title}
            yield {**told, "kind": question.kind, "checklist": list(question.checklist), "passages": shown}
