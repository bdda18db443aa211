"""Make a table with one row per claim from stored feedback, for pandas and spreadsheets."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from workbench.metrics.rows import each_row, file_of
from workbench.runs.store import QUESTIONS, read_passages, read_questions
from workbench.types import (
    OBJECTION,
    OBJECTIONS,
    REASONS,
    UNFOUND,
    UNPARSED,
    JsonMapping,
    JsonObject,
    WorkbenchError,
)
from workbench.util.jsonl import encodable, replace_rows

if TYPE_CHECKING:
    from pandas import DataFrame

# where a spreadsheet would read a formula; full-width characters count, too
FORMULA = re.compile(r"(^|[\t\n\v\f\x1c-\x1e\x85\u2028\u2029])(?=[=+\-@＝＋－＠])")


def export_claims(path: Path | str, out: Path) -> JsonObject:
    """Write the claims of graded responses to a CSV or Parquet file, one row per claim.

    Args:
        path: feedback file (graded responses as JSON lines), or run folder for its rollouts.
        out: new file. Its ending, .csv or .parquet, determines the format.

    Returns:
        `{"out": path, "claims": number of claims, "responses": number of responses with claims}`.

    Raises:
        WorkbenchError: `path` has no feedback, or `out` exists, or its name does not end in .csv or
            .parquet.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise WorkbenchError(f"'{out}' ends in '{out.suffix}': name a .csv or a .parquet file")
    if out.exists():
        raise WorkbenchError(f"'{out}' exists already: name another file, or remove it")
    frame, content = claims_table(path), io.BytesIO()
    write_table(frame, content, out.suffix[1:])
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_rows(out, [content.getvalue()])
    except OSError as error:
        raise WorkbenchError(
            f"cannot write '{out}' ({error.strerror}): name another file"
        ) from error
    return {"out": str(out), "claims": len(frame), "responses": int(frame["id"].nunique())}


def claims_table(path: Path | str) -> "DataFrame":
    """Return a pandas table of the claims of graded responses, one row per claim.

    A row has the question, the claim's text and position, and its verdict with evidence. The column
    `reward_METHOD`, such as `reward_rlfh`, is the part of the reward that the claim earned. It is
    empty if no claim of the response has a part, as with rewards of whole responses. The column
    `response_METHOD` is the reward of the whole response.

    Args:
        path: feedback file (graded responses as JSON lines), or run folder for its rollouts.
    """
    import pandas as pd

    file = file_of(path, rollouts=True)
    stored = (file.parent / QUESTIONS).exists()
    questions = {id: one.text for id, one in read_questions(file.parent).items()} if stored else {}
    passages = {id: one.text for id, one in read_passages(file.parent).items()}
    claims = each_row(file, lambda row: list(_claims(row, questions, passages)))
    rows = [
        {k: encodable(value) if isinstance(value, str) else value for k, value in claim.items()}
        for of_row in claims
        for claim in of_row
    ]
    # without claims, the table has no rows but the columns of a claim
    columns = None if rows else [*next(_claims({"id": "", "claims": [{}]}, {}, {}))]
    return pd.DataFrame(rows, columns=columns).convert_dtypes()


def _claims(
    row: JsonMapping, questions: JsonMapping, passages: JsonMapping
) -> Iterator[JsonObject]:
    verdicts = [one for one in row.get("verdicts") or () if one.get("aspect", "fact") == "fact"]
    # reversed, so that the first of several verdicts on a claim is kept
    facts = {verdict["target"]: verdict for verdict in reversed(verdicts)}
    question = str(row.get("question_id") or row["id"])
    for claim in row.get("claims") or ():
        fact = facts.get(f"claim:{claim.get('id')}", claim)
        start, end = claim.get("span") or (None, None)
        tokens = [
            number
            for number, (low, high) in enumerate((row.get("tokens") or {}).get("offsets") or ())
            if end is not None and low < end and high > start
        ]
        yield {
            "question_id": question,
            "question": questions.get(question, row.get("question")),
            "id": row.get("id"),
            "step": row.get("step"),
            "claim": claim.get("id"),
            "text": claim.get("text"),
            "section": claim.get("section"),
            "start": start,
            "end": end,
            **{name: fact.get(name) for name in ("label", "p", "informativeness")},
            "error": (fact.get("error") or {}).get("message"),
            "evidence": "\n".join(_evidence(fact, passages)),
            "reason": _reason(fact),
            "judge": fact.get("by"),
            **dict(_rewards(row.get("rewards") or {}, claim.get("id"))),
            "first_token": min(tokens, default=None),
            "tokens": len(tokens),
        }


def _rewards(rewards: JsonMapping, claim: int | None) -> Iterator[tuple[str, float | None]]:
    """Yield (column, reward of the claim or of its response), for each method with a reward."""
    for method, reward in rewards.items():
        if reward["value"] is not None:
            of_claims = [event for event in reward["events"] if event["claim"] is not None]
            own = [event["value"] for event in of_claims if event["claim"] == claim]
            yield f"reward_{method}", sum(own) if of_claims else None
            yield f"response_{method}", reward["value"]


def _evidence(fact: JsonMapping, passages: JsonMapping) -> Iterator[str]:
    """Yield the texts of a verdict's evidence: spans of passages, or facts of the closed world."""
    for item in fact.get("evidence") or ():
        passage = passages.get(item.get("passage"))
        if passage is not None:
            start, end = item.get("span") or (0, len(passage))
            yield passage[start:end]
        elif "fact" in item:
            yield item["text"]


def _reason(fact: JsonMapping) -> str | None:
    """Return why the judge could not check a claim, or why a rule objected to it.

    Return None if neither is the case.
    """
    remarks = {UNPARSED: REASONS, UNFOUND: REASONS, OBJECTION: OBJECTIONS}
    for item in fact.get("evidence") or ():
        for key, texts in remarks.items():
            if key in item:
                return texts.get(item[key], item[key])
    return None


def write_table(frame: "DataFrame", file: BinaryIO, form: str) -> None:
    """Write a table to an open file in the format `form`: "csv" or "parquet".

    In a CSV file, cells that a spreadsheet would execute as formulas are changed by
    `without_formula`.
    """
    if form == "parquet":
        frame.to_parquet(file, index=False)
    else:
        inert = frame.map(without_formula).rename(columns=without_formula)
        inert.to_csv(file, index=False, lineterminator="\n", quoting=csv.QUOTE_ALL)


def without_formula(value: object) -> object:
    """Change a table cell so that a spreadsheet does not execute it as a formula.

    In a text, an apostrophe is put before each line or tab-separated field that begins like a
    formula: "=1+1" -> "'=1+1". All line ends become line feeds. Other values are returned
    unchanged.
    """
    if not isinstance(value, str):
        return value
    return FORMULA.sub(r"\1'", value.replace("\r\n", "\n").replace("\r", "\n"))
