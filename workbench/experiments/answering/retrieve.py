"""Add passages from an index to questions without passages, for example to train FoRAG on ELI5."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.experiments.answering.sources import Sources
from workbench.types import JsonObject, Passage, Question, WorkbenchError
from workbench.util.jsonl import encode, replace_rows

BATCH = 256  # questions per search
EVERY = 4  # batches between lines of progress


def retrieve(questions: Sequence[Question], sources: Sources, k: int, out: Path) -> dict[str, int]:
    """Write questions to a JSONL file, and add passages to questions that have none.

    A question for which no passage is found is left out.

    Args:
        sources: the source of passages, whose search is used.
        k: maximum number of added passages per question.
        out: the JSONL file to write.

    Returns:
        Numbers of questions:

        * "questions": all questions.
        * "had": questions that had passages before.
        * "retrieved": questions to which passages were added.
        * "found_nothing": questions that were left out.

    Raises:
        WorkbenchError: no question has passages after the search, or `out` exists.
    """
    # checked first, because the search takes long
    if out.exists():
        raise WorkbenchError(f"'{out}' exists already: remove it, or name another file")
    counts = Counter({"questions": len(questions), "had": 0, "retrieved": 0, "found_nothing": 0})
    rows = list(_rows(questions, sources, k, counts))
    if not rows:
        raise WorkbenchError(
            "the index has no passage for any of these questions: name another --store"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_rows(out, map(encode, rows))
    return dict(counts)


def _rows(
    questions: Sequence[Question], sources: Sources, k: int, counts: Counter[str]
) -> Iterator[JsonObject]:
    for number, start in enumerate(range(0, len(questions), BATCH), start=1):
        batch = questions[start : start + BATCH]
        bare = [question.text for question in batch if not question.passages]
        results = iter(sources.search(bare, k) if bare else [])
        for question in batch:
            passages = question.passages or tuple(next(results))
            counts[
                "had" if question.passages else "retrieved" if passages else "found_nothing"
            ] += 1
            if passages:
                yield _row(question, passages)
        if number % EVERY == 0:
            done = start + len(batch)
            print(f"searched for {done} of {len(questions)} questions", file=sys.stderr)


def _row(question: Question, passages: Sequence[Passage]) -> JsonObject:
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "title": question.title,
        "kind": question.kind,
        "checklist": list(question.checklist),
        "passages": [{"id": p.id, "title": p.title, "text": p.text} for p in passages],
    }
