"""Questions without passages, with those that an index finds: what FoRAG is trained on where a
data set, as ELI5, has none.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.answering.sources import Sources
from workbench.jsonl import encode, iter_rows, open_append, repair, replace_rows
from workbench.types import Passage, Question, WorkbenchError

BATCH = 256  # questions that are searched for at once, and lost at most where a search is stopped
EVERY = 4  # batches between lines of progress


def retrieve(questions: Sequence[Question], sources: Sources, k: int, out: Path) -> dict[str, int]:
    """Write the questions, with up to `k` passages each, to a JSONL file that trainings read,
    whole or not at all.

    Passages that a question brings are kept, and nothing is looked for. One for which nothing is
    found is left out: an answer could rest on nothing. What was found so far stands in `out`
    with `.partial` behind it; the same call goes on from there.

    Returns:
        How many `questions` there were, how many `had` passages, were `retrieved` with some, and
        `found_nothing`.

    Raises:
        WorkbenchError: nothing is found for any question, `out` is there already, or what was
        begun is of other questions,
            another `k` or another index.
    """
    if out.exists():
        raise WorkbenchError(f"'{out}' is there already: remove it, or name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f"{out.name}.partial")
    counts = Counter({"questions": len(questions), "had": 0, "retrieved": 0, "found_nothing": 0})
    counts.update(_begun(partial, {"questions": _digest(questions), "k": k, "index": sources.key}))
    _search(questions, sources, k, partial, counts)
    if not counts["had"] + counts["retrieved"]:
        partial.unlink()
        raise WorkbenchError(
            "the index has nothing on any of these questions: name another --store"
        )
    replace_rows(out, (encode(row["row"]) for row in iter_rows(partial) if row.get("row")))
    partial.unlink()
    return dict(counts)


def _begun(partial: Path, told: Mapping[str, Any]) -> Counter[str]:
    """How many questions of each kind were searched for before; a new file, or one whose first
    line is lost, is begun.
    """
    repair(partial)
    rows = iter_rows(partial) if partial.exists() else iter(())
    first = next(rows, None)
    if first is None:
        replace_rows(partial, [encode(told)])
    elif first != told:
        raise WorkbenchError(
            f"'{partial}' was begun with other questions, another --k or another index: give those"
            " again, or remove it"
        )
    return Counter(str(row.get("counted")) for row in rows)


def _search(
    questions: Sequence[Question], sources: Sources, k: int, partial: Path, counts: Counter[str]
) -> None:
    done = counts["had"] + counts["retrieved"] + counts["found_nothing"]
    if done:
        print(f"goes on after {done} of {len(questions)} questions", file=sys.stderr)
    with open_append(partial) as file:
        for number, start in enumerate(range(done, len(questions), BATCH), start=1):
            rows = list(_rows(questions[start : start + BATCH], sources, k))
            file.writelines(map(encode, rows))
            file.flush()
            counts.update(row["counted"] for row in rows)
            if number % EVERY == 0:
                print(
                    f"searched for {start + len(rows)} of {len(questions)} questions",
                    file=sys.stderr,
                )


def _rows(questions: Sequence[Question], sources: Sources, k: int) -> Iterator[dict[str, Any]]:
    bare = [question.text for question in questions if not question.passages]
    found = iter(sources.search(bare, k) if bare else [])
    for question in questions:
        passages = question.passages or tuple(next(found))
        counted = "had" if question.passages else "retrieved" if passages else "found_nothing"
        yield {"counted": counted, "row": _row(question, passages) if passages else None}


def _row(question: Question, passages: Sequence[Passage]) -> dict[str, Any]:
    shown = [
        {name: value for name, value in asdict(one).items() if name != "score"} for one in passages
    ]
    told = {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "title": question.title,
    }
    return {**told, "kind": question.kind, "checklist": list(question.checklist), "passages": shown}


def _digest(questions: Sequence[Question]) -> str:
    """Of all that is written of the questions."""
    sha = hashlib.sha256()
    for question in questions:
        sha.update(encode(_row(question, question.passages)))
    return sha.hexdigest()
