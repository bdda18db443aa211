"""The rollouts that are listed, as a file for other tools: CSV or Parquet."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from workbench.inspector.listing import Query, Record, listing
from workbench.inspector.runs import Asked, Runs
from workbench.runs.rows import Entry, text_of
from workbench.runs.steps import parts_of
from workbench.types import WorkbenchError

MOST = 50_000  # rows of a file that the page is sent
FORMS = ("csv", "parquet")
# a spreadsheet's commands
FORMULA = re.compile(r"(^|[\t\n\v\f\x1c-\x1e\x85\u2028\u2029])(?=[=+\-@])")


def exported(runs: Runs, name: str, query: Query, form: str) -> dict[str, Any]:
    """All rollouts of a query in their order, as {"name", "type", "base64"}; in CSV no line of a
    cell is a formula.

    Raises:
        WorkbenchError: no such form, or more rows than a page is sent.
    """
    import pandas as pd

    if form not in FORMS:
        raise WorkbenchError(f"no form '{form[:20]}': choose one of {', '.join(FORMS)}")
    record = Record.of(runs, name, whole=True)
    entries = listing(record, query).entries
    if len(entries) > MOST:
        raise WorkbenchError(
            f"{len(entries):,} rollouts are more than the {MOST:,} of one file: choose fewer, or"
            " read the run's rollouts.jsonl"
        )

    rows = list(_rows(record, entries))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    frame, out = pd.DataFrame(rows, columns=columns), io.BytesIO()
    if form == "csv":
        frame.map(_inert).to_csv(out, index=False, lineterminator="\n", quoting=csv.QUOTE_ALL)
    else:
        frame.to_parquet(out, index=False)
    stem = "-".join(filter(None, name.split("/"))) + "-rollouts"
    kind = "text/csv" if form == "csv" else "application/vnd.apache.parquet"
    return {
        "name": f"{stem}.{form}",
        "type": kind,
        "base64": base64.b64encode(out.getvalue()).decode(),
    }


def _rows(record: Record, entries: Any) -> Iterator[dict[str, Any]]:
    asked, none = record.runs.asked(record.name), Asked("", "", "")
    for entry, line in zip(entries, record.runs.lines(record.name, entries), strict=True):
        question = asked.get(entry.question, none)
        plain = {
            "id": entry.id,
            "step": entry.step,
            "group": entry.group,
            "question_id": entry.question,
        }
        plain |= {
            "question": question.text,
            "kind": question.kind,
            "tier": question.tier,
            "outcome": entry.outcome,
        }
        texts = {key: _whole(value) for key, value in (plain | {"response": text_of(line)}).items()}
        yield texts | {"length": entry.length, **_paid(entry, record.own)}


def _paid(entry: Entry, own: str) -> dict[str, float | None]:
    whole = {f"reward_{method}": entry.value(method) for method, part in entry.shape if not part}
    return whole | (parts_of(entry, own) if own else {})


def _whole(value: Any) -> Any:
    """Text that any encoding can hold: a lone surrogate, as a cut byte sequence decodes to, is
    replaced.
    """
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _inert(value: Any) -> Any:
    """Text of which no part is a formula, also where a program splits it at its tabs or line
    breaks.
    """
    if not isinstance(value, str):
        return value
    return FORMULA.sub(r"\1'", value.replace("\r\n", "\n").replace("\r", "\n"))
