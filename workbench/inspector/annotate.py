"""The inspector's Annotate tab: a person labels the claims of a run one by one.

The tab shows how many claims are labelled, and how often these labels agree with the judge's
labels.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from workbench.inspector.annotated import (
    ANNOTATIONS,
    annotate,
    claims_of,
    fact_labels,
    labelled_rows,
    labels,
    labels_in,
)
from workbench.inspector.opened import stored_evidence
from workbench.inspector.parts import ServerFunction, server_function
from workbench.inspector.runs import Runs
from workbench.inspector.token_view import as_json, payload
from workbench.runs.rows import Rows
from workbench.types import CLAIM_LABELS, Feedback, JsonMapping, JsonObject, WorkbenchError

if TYPE_CHECKING:
    from pandas import DataFrame

# "random" sorts by a hash of the row ids, so that all annotators label the same rows first
ORDERS = ("random", "recorded")
SKIPPED = 2000  # maximum number of skipped claims in a request
Place = tuple[str, int]  # ids of a row and a claim


def annotator(runs: Runs) -> ServerFunction:
    """Return the function that the page calls to store a label and to get the next claim.

    All keys of its request are optional:

    * "run": the name of the run; by default the first run that has claims.
    * "given": a label to store, as {"place": [row id, claim id], "label": text}. The label None
      removes the stored label.
    * "order", "passed", "at": see `claim_to_label`.

    The result is {"text": JSON text with the result of `claim_to_label`}.
    """

    @server_function
    def annotation(request: JsonObject) -> JsonObject:  # the page calls it by this name
        if not (names := [name for name in runs.names() if name.partition("/")[0] != ANNOTATIONS]):
            raise WorkbenchError(
                "the runs folder has no run yet: train one, or start the inspector with --run DIR"
            )
        run = str(request.get("run") or _first(runs, names))
        data: JsonObject = {
            "runs": names,
            "run": run,
            "orders": list(ORDERS),
            "labels": list(CLAIM_LABELS),
        }
        if label := request.get("given"):
            data["last"] = _store(runs, run, label)
        return {"text": as_json(data | claim_to_label(runs, run, request))}

    return annotation


def _first(runs: Runs, names: Sequence[str]) -> str:
    """Return the name of the first run with claims in the rows read so far, else `names[0]`."""
    for name in names:
        with suppress(WorkbenchError):  # selecting a damaged run shows its error
            if runs.rows(name).table["claims"].any():
                return name
    return names[0]


def claim_to_label(runs: Runs, run: str, request: JsonMapping) -> JsonObject:
    """Return the next claim that a person has not labelled yet.

    A claim is identified by [row id, claim id].

    Args:
        request: an object with optional keys: "order" of the rows ("random", the default, or
            "recorded"), "passed" (a list of claims to skip) and "at" (a claim to return instead).

    Returns:
        "claim": the claim's data, such as its text and evidence; None if no claim is left.
        "done", "total": the number of labelled claims, and of all claims.
        "agreement": how well the labels agree with the judge's labels; see `scoring.agree.compare`.
    """
    from workbench.scoring.agree import compare  # not when the page starts: it takes a moment

    rows = runs.all_rows(run)
    done = _labelled(runs, run, rows)
    pairs = [
        (row.person[claim], row.judge[claim])
        for row in done.values()
        for claim in row.person
        if claim in row.judge
    ]
    # bounded, because the list comes from the page
    skipped = {_place(place) for place in list(request.get("passed") or ())[-SKIPPED:]}
    claim: JsonObject | None
    if request.get("at"):
        claim = _claim(runs, run, *_place(request["at"]))
    else:
        table = _ordered(rows, str(request.get("order")))
        unlabelled = _unlabelled(runs, run, table, done, skipped)
        claim = next((_card(runs, run, *pair) for pair in unlabelled), None)
    return {
        "claim": claim,
        "done": sum(len(row.person) for row in done.values()),
        "total": int(rows.table["claims"].sum()),
        "agreement": compare(pairs),
    }


def _store(runs: Runs, run: str, annotation: JsonMapping) -> JsonObject:
    """Store a person's label of a claim; return {"place", "text", "label", "judge"}.

    "text" is the claim's text, and "judge" is the judge's label.

    Args:
        annotation: {"place": [row id, claim id], "label": text}. The label None removes the stored
            label; "judge" is then None.
    """
    row, claim = _place(annotation["place"])
    feedback, label = runs.feedback(run, runs.number(run, row)), annotation.get("label")
    annotate(runs, run, feedback, {str(claim): {} if label is None else {"label": label}})
    return {
        "place": [row, claim],
        "text": next(item.text for item in feedback.claims if item.id == claim),
        "label": label,
        "judge": fact_labels(feedback).get(claim) if label else None,
    }


def _place(place: Sequence[str | int]) -> Place:
    """Convert [row id, claim id], as the page sends it, to a tuple."""
    row, claim = place
    return str(row), int(claim)


class Labelled(NamedTuple):
    """Labels of one response's claims by a person and by the judge, each as claim id -> label."""

    person: Mapping[int, str]
    judge: Mapping[int, str]


def _labelled(runs: Runs, run: str, rows: Rows) -> dict[str, Labelled]:
    """Return the labels of each row that a person has labelled, by row id.

    Rows that were removed or damaged, or whose claims changed, are left out.
    """
    # claims and labels stay in memory with the run: the page calls this after every label
    memory, done = rows.memory.setdefault("judged", {}), {}
    for name, stored in labelled_rows(runs, run).items():
        if name not in rows.numbers:
            continue
        if name not in memory:
            try:
                row = runs.feedback(run, rows.numbers[name])
            except WorkbenchError:
                continue
            memory[name] = claims_of(row), fact_labels(row)
        if person := labels_in(stored, memory[name][0]):
            done[name] = Labelled(person, memory[name][1])
    return done


def _ordered(rows: Rows, order: str) -> "DataFrame":
    """Return the rows that have claims: in file order if `order` is "recorded", else shuffled.

    Rows are shuffled by a hash of their ids, so the shuffled order is always the same.
    """
    table = rows.table[rows.table["claims"] > 0]
    if order == ORDERS[1]:
        return table
    if "shuffled" not in rows.derived:
        rows.derived["shuffled"] = table["id"].map(
            lambda name: hashlib.sha256(name.encode("utf-8", "replace")).digest()
        )
    return table.loc[rows.derived["shuffled"].sort_values(kind="stable").index]


def _unlabelled(
    runs: Runs, run: str, table: "DataFrame", done: Mapping[str, Labelled], skipped: set[Place]
) -> Iterator[tuple[Feedback, int]]:
    """Yield (row, claim id) for each claim that is neither labelled nor skipped.

    Damaged rows are left out.

    Args:
        table: the rows, in the order to yield.
        done: row id -> the labels of its claims.
    """
    skips = Counter(
        row for row, claim in skipped if row not in done or claim not in done[row].person
    )
    for number, name, claims in zip(table.index, table["id"], table["claims"], strict=True):
        labelled = done[name].person if name in done else {}
        if len(labelled) + skips[name] >= claims:
            continue
        try:
            row = runs.feedback(run, number)
        except WorkbenchError:
            continue
        for claim in row.claims:
            if claim.id not in labelled and (name, claim.id) not in skipped:
                yield row, claim.id


def _claim(runs: Runs, run: str, row: str, claim: int) -> JsonObject:
    feedback = runs.feedback(run, runs.number(run, row))
    if claim not in {item.id for item in feedback.claims}:
        raise WorkbenchError(
            f"row '{row[:80]}' has no claim {claim + 1}: choose one of its"
            f" {len(feedback.claims)} claims"
        )
    return _card(runs, run, feedback, claim) | {"label": labels(runs, run, feedback).get(claim)}


def _card(runs: Runs, run: str, row: Feedback, claim: int) -> JsonObject:
    """Return the data that the tab shows of a claim, without the judge's label.

    The data include the question, its gold answers, the response and the evidence.
    """
    data = payload(row, name=run, lookup=stored_evidence(runs, run))
    columns = next(item for item in data["claims"] if item["id"] == claim)
    return {name: columns[name] for name in ("id", "text", "section", "span", "evidence")} | {
        "place": [row.response.id, claim],
        "question": data["question"],
        "answers": data["answers"],
        "answer": data["text"],
        "label": None,
    }
