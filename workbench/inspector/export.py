"""Export the listed rollouts as a CSV or Parquet file."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.experiments.claims_table import write_table
from workbench.inspector.listing import Query, Record, listing
from workbench.inspector.runs import QuestionInfo, Runs
from workbench.runs.rows import NO_STEP, text_of
from workbench.runs.steps import parts_of
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import encodable

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_ROWS = 50_000  # rows in a file
FORMS = ("csv", "parquet")


def exported(runs: Runs, name: str, query: Query, form: str) -> JsonObject:
    """Return a file with all rollouts of a query in order, as {"name", "type", "base64"}.

    Texts in a CSV file are quoted so that a spreadsheet executes no formula.

    Raises:
        WorkbenchError: the form is unknown, or there are more than `MAX_ROWS` rows.
    """
    if form not in FORMS:
        raise WorkbenchError(f"no form '{form[:20]}': choose one of {', '.join(FORMS)}")
    # all rows: a file with only those read so far would look complete
    record = Record.of(runs, name, whole=True)
    numbers = listing(record, query).numbers
    if len(numbers) > MAX_ROWS:
        raise WorkbenchError(
            f"a file holds at most {MAX_ROWS:,} rollouts ({len(numbers):,} are selected): select"
            " fewer, or read the run's rollouts.jsonl"
        )
    frame, out = _frame(record, numbers), io.BytesIO()
    write_table(frame, out, form)
    return {
        "name": f"{'-'.join(filter(None, name.split('/')))}-rollouts.{form}",
        "type": "text/csv" if form == "csv" else "application/vnd.apache.parquet",
        "base64": base64.b64encode(out.getvalue()).decode(),
    }


def _frame(record: Record, numbers: Sequence[int]) -> DataFrame:
    from pandas import DataFrame

    table, info = record.rows.table.loc[numbers], record.runs.question_info(record.name)
    questions = [info.get(key, QuestionInfo("", "", "")) for key in table["question"]]
    lines = record.runs.lines(record.name, table["offset"])
    texts = {
        "id": table["id"],
        "group": table["group"],
        "question_id": table["question"],
        "question": [question.text for question in questions],
        "kind": [question.kind for question in questions],
        "tier": [question.tier for question in questions],
        "response": [text_of(line) for line in lines],
    }
    columns = {name: list(map(encodable, values)) for name, values in texts.items()}
    steps = [None if step == NO_STEP else step for step in table["step"].tolist()]
    frame = DataFrame({**columns, "step": steps, "length": table["length"].tolist()}, numbers)
    frame["outcome"] = table["outcome"].replace("", None)
    for method, part in record.rows.rewards:
        if not part:
            frame[f"reward_{method}"] = record.rows.reward(method).loc[numbers]
    for name, values in parts_of(record.rows, record.own).items() if record.own else ():
        frame[name] = values.loc[numbers]
    return frame
