"""The Annotate page: one unlabelled claim after another, the progress, and the agreement of person
and judge.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.inspector.annotated import (
    ANNOTATIONS,
    annotate,
    claims_of,
    labelled_rows,
    labels,
    said_of,
)
from workbench.inspector.opened import stored_evidence
from workbench.inspector.parts import answered
from workbench.inspector.runs import Runs
from workbench.inspector.token_view import as_json, payload
from workbench.runs.rows import Rows
from workbench.scoring.agree import compare
from workbench.types import CLAIM_LABELS, Feedback, WorkbenchError

if TYPE_CHECKING:
    from pandas import DataFrame

# the first is the same for everyone: what is labelled first stands for the whole
ORDERS = ("random", "recorded")
SEEN = 2000  # claims of this sitting that the page may tell of
Place = tuple[str, int]  # a row's id, a claim's


def annotator(runs: Runs) -> Callable[[Any], dict[str, Any]]:
    """The function with which the page stores a label and gets the next claim, as JSON text."""

    @answered
    def annotation(request: dict[str, Any]) -> dict[str, Any]:
        if not (names := [name for name in runs.names() if name.partition("/")[0] != ANNOTATIONS]):
            raise WorkbenchError(
                "there is no run in the runs folder yet: train one, or start the inspector with"
                " --run DIR"
            )
        run = str(request.get("run") or _first(runs, names))
        told: dict[str, Any] = {
            "runs": names,
            "run": run,
            "orders": list(ORDERS),
            "labels": list(CLAIM_LABELS),
        }
        if given := request.get("given"):
            told["last"] = _keep(runs, run, given)
        return {"text": as_json(told | turn(runs, run, request))}

    return annotation


def _first(runs: Runs, names: Sequence[str]) -> str:
    """The first run with claims in the rows read so far, else the first run."""
    for name in names:
        with suppress(WorkbenchError):  # a damaged run: an error where it is chosen
            if runs.rows(name).table["claims"].any():
                return name
    return names[0]


def turn(runs: Runs, run: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The claim to label, the progress and the agreement. `at` names the claim; by default it is
    the next unlabelled one that is not in `passed`.
    """
    rows = runs.all_rows(run)
    done = _labelled(runs, run, rows)
    pairs = [
        (label, row.judged[claim])
        for row in done.values()
        for claim, label in row.said.items()
        if claim in row.judged
    ]
    passed = {_place(place) for place in list(request.get("passed") or ())[-SEEN:]}
    claim: dict[str, Any] | None
    if request.get("at"):
        claim = _claim(runs, run, *_place(request["at"]))
    else:
        found = _open(runs, run, _ordered(rows, str(request.get("order"))), done, passed)
        claim = next((_shown(runs, run, row, one) for row, one in found), None)
    return {
        "claim": claim,
        "done": sum(len(row.said) for row in done.values()),
        "total": int(rows.table["claims"].sum()),
        "agreement": compare(pairs),
    }


def _keep(runs: Runs, run: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Store a label, or remove it (None); the judge's label is shown after the person's."""
    row, claim = _place(given["place"])
    feedback, label = runs.feedback(run, runs.number(run, row)), given.get("label")
    annotate(runs, run, feedback, {str(claim): {} if label is None else {"label": label}})
    text = next(one.text for one in feedback.claims if one.id == claim)
    return {
        "place": [row, claim],
        "text": text,
        "label": label,
        "judge": _judged(feedback).get(claim) if label else None,
    }


def _place(place: Any) -> Place:
    row, claim = place
    return str(row), int(claim)


class Labelled(NamedTuple):
    """The labels of a person and of the judge for the claims of a row."""

    said: Mapping[int, str]
    judged: Mapping[int, str]


def _labelled(runs: Runs, run: str, rows: Rows) -> dict[str, Labelled]:
    """The labelled rows by id, without those that the run no longer has; each is read once."""
    memory, done = rows.memory.setdefault("judged", {}), {}
    for name, stored in labelled_rows(runs, run).items():
        if name not in rows.numbers:
            continue
        if name not in memory:
            try:
                row = runs.feedback(run, rows.numbers[name])
            except WorkbenchError:
                continue
            memory[name] = claims_of(row), _judged(row)
        if said := said_of(stored, memory[name][0]):
            done[name] = Labelled(said, memory[name][1])
    return done


def _judged(row: Feedback) -> dict[int, str]:
    verdicts = (
        verdict
        for verdict in row.verdicts
        if verdict.aspect == "fact" and verdict.target.startswith("claim:")
    )
    return {int(v.target[6:]): v.label for v in verdicts if v.label in CLAIM_LABELS and not v.error}


def _ordered(rows: Rows, order: str) -> DataFrame:
    """The rows with claims, as recorded or in an order that depends on their ids alone."""
    table = rows.table[rows.table["claims"] > 0]
    if order == ORDERS[1]:
        return table
    if "shuffled" not in rows.derived:
        rows.derived["shuffled"] = table["id"].map(
            lambda name: hashlib.sha256(name.encode("utf-8", "replace")).digest()
        )
    return table.loc[rows.derived["shuffled"].sort_values(kind="stable").index]


def _open(
    runs: Runs, run: str, table: DataFrame, done: Mapping[str, Labelled], passed: set[Place]
) -> Iterator[tuple[Feedback, int]]:
    """The claims that are neither labelled nor passed over; unreadable rows are skipped."""
    passes = Counter(row for row, claim in passed if row not in done or claim not in done[row].said)
    for number, name, claims in zip(table.index, table["id"], table["claims"], strict=True):
        said = done[name].said if name in done else {}
        if len(said) + passes[name] >= claims:
            continue
        try:
            row = runs.feedback(run, number)
        except WorkbenchError:
            continue
        yield from (
            (row, claim.id)
            for claim in row.claims
            if claim.id not in said and (name, claim.id) not in passed
        )


def _claim(runs: Runs, run: str, row: str, claim: int) -> dict[str, Any]:
    feedback = runs.feedback(run, runs.number(run, row))
    if claim not in {one.id for one in feedback.claims}:
        raise WorkbenchError(
            f"row '{row[:80]}' has no claim {claim + 1}: choose one of its {len(feedback.claims)}"
        )
    return _shown(runs, run, feedback, claim) | {"label": labels(runs, run, feedback).get(claim)}


def _shown(runs: Runs, run: str, row: Feedback, claim: int) -> dict[str, Any]:
    """A claim with its answer and evidence, without the judge's verdict."""
    data = payload(row, name=run, lookup=stored_evidence(runs, run))
    found = next(one for one in data["claims"] if one["id"] == claim)
    kept = {name: found[name] for name in ("id", "text", "section", "span", "evidence")}
    return kept | {
        "place": [row.response.id, claim],
        "question": data["question"],
        "answers": data["answers"],
        "answer": data["text"],
        "label": None,
    }
