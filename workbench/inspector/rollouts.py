"""The rollouts of a run as the page lists them: a page of those that are chosen, and what they
can be chosen by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.failures import is_logged
from workbench.inspector.listing import (
    NO_OUTCOME,
    ORDERS,
    PAGE,
    Listed,
    Listing,
    Query,
    Record,
    listing,
)
from workbench.inspector.runs import Runs
from workbench.recipes import title
from workbench.runs.rows import Index
from workbench.runs.steps import part_places
from workbench.token_view import as_json
from workbench.types import WorkbenchError


def order_choices(method: str) -> list[tuple[str, str]]:
    """What the rollouts can be sorted by, as (words, key), for a run that was paid by `method`;
    "": by its trainer.
    """
    reward = f"{title(method) or 'logged'} reward"
    words = (f"{reward}, lowest first", f"{reward}, highest first", "Disagreement, largest first")
    return [(label[0].upper() + label[1:], key) for label, key in zip(words, ORDERS, strict=True)]


def rollouts(runs: Runs, name: str | None, query: Query) -> str:
    """A page of the rollouts that a query chooses, each paid by every method, as text for the
    page.
    """
    if not name:
        return as_json({})
    try:
        record = Record.of(runs, name)
        found = listing(record, query)
        shown = [record.listed(entry) for entry in found.entries[query.start : query.start + PAGE]]
        choices = choices_of(record)
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    rows, damaged = (
        [row for row in shown if "broken" not in row],
        [row["broken"] for row in shown if "broken" in row],
    )
    if not rows and damaged:
        return as_json({"error": f"none of {len(damaged)} rows can be shown: {damaged[0]}"})
    if not record.index.entries:  # a run without any says so where its curves would be
        return as_json({})
    if not rows:
        note = (
            "No rollout is like this."
            if _is_filtered(query)
            else "No rollouts are recorded of this step."
        )
        return as_json(
            {"note": note, "choices": choices, "step": query.step, "missing": record.index.missing}
        )
    count = {
        "start": query.start,
        "count": len(found.entries),
        "page": PAGE,
        "choices": choices,
        "step": query.step,
    }
    count |= {"missing": record.index.missing}
    note = _counted(found, query, record.index) + _left_out(damaged) + _still_read(record.index)
    rows = [{**row, "disagreement": found.spreads.get(row["number"])} for row in rows]
    return as_json({"note": note, "rows": rows, **_columns(rows, record.own, query.order), **count})


def _columns(rows: Sequence[Listed], own: str, order: str) -> dict[str, Any]:
    """Which methods the rows are told of, and why others are not."""
    methods = dict.fromkeys(name for row in rows for name in row["values"] if not is_logged(name))
    scored = {name: sum(row["values"].get(name) is not None for row in rows) for name in methods}
    return {
        "methods": [name for name in methods if scored[name] or name == own],
        "scored": {name: [count, len(rows)] for name, count in scored.items()},
        "unscored": {name: _reason(rows, name) for name, count in scored.items() if not count},
        "logged": list(
            dict.fromkeys(name for row in rows for name in row["values"] if is_logged(name))
        ),
        "sorted": {"by": order if order == ORDERS[2] else own, "order": order},
    }


def choices_of(record: Record) -> dict[str, Any]:
    """What the rollouts of a run can be chosen by: those of its outcomes, tiers, kinds, parts
    and steps that it has.
    """
    index, asked, own = record.index, record.runs.asked(record.name), record.own
    known = index.memory.setdefault(
        "choices", {"rows": 0, "outcomes": {}, "questions": {}, "parts": {}, "unseen": {}}
    )
    for entry in index.entries[known["rows"] :]:
        known["outcomes"][entry.outcome or NO_OUTCOME] = known["questions"][entry.question] = None
        if (unseen := known["unseen"].get(id(entry.shape))) is None:
            unseen = known["unseen"][id(entry.shape)] = part_places(entry.shape, own)
        for name in [
            name for name, place in list(unseen.items()) if entry.numbers[place] is not None
        ]:
            known["parts"][name] = None
            unseen.pop(name, None)  # another thread may look, too
        known["rows"] += 1
    steps = [step for step in list(index.by_step) if step is not None]
    questions = [asked[key] for key in known["questions"] if key in asked]
    return {
        "outcomes": list(known["outcomes"]),
        "tiers": sorted({one.tier for one in questions} - {""}),
        "kinds": sorted({one.kind for one in questions} - {""}),
        "parts": list(known["parts"]),
        "steps": [min(steps), max(steps)] if steps else [],
        "orders": order_choices(own),
        "own": own,
    }


def _is_filtered(query: Query) -> bool:
    return query != Query(query.step, query.order, start=query.start)


def _still_read(index: Index) -> str:
    return (
        f" The record is still being read: {index.missing:,} rows before these will come."
        if index.missing
        else ""
    )


def _left_out(damaged: Sequence[str]) -> str:
    count = f"{len(damaged)} {'row is' if len(damaged) == 1 else 'rows are'} left out"
    return f" {count}: {damaged[0]}." if damaged else ""


def _counted(found: Listing, query: Query, index: Index) -> str:
    """How many rollouts there are, and which of them are listed."""
    count = len(found.entries)
    of = f" of step {query.step}" if query.step is not None and query.step in index.by_step else ""
    total = f"{count:,} {'rollout' if count == 1 else 'rollouts'}{of}" + (
        " like this" if _is_filtered(query) else ""
    )
    last = min(query.start + PAGE, count)
    return (
        total
        + (f"; {query.start + 1:,} to {last:,} in this order are listed" if count > PAGE else "")
        + (
            f"; {found.left_out:,} more were not paid anew to be sorted: choose fewer"
            if found.left_out
            else ""
        )
        + ". Click one to open it in Inspect."
    )


def _reason(rows: Sequence[Listed], method: str) -> str:
    """Why a method scored none of the rows, in the words of the first."""
    reasons = (row["reasons"].get(method) for row in rows)
    return next(filter(None, reasons), "this method has not been applied")
