"""The rollouts of a step as a list: what they are sorted by, and how far the methods disagree about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from workbench.inspector.opened import configs_of, paid
from workbench.inspector.runs import Entry, Runs, damage
from workbench.inspector.series import reward_of
from workbench.recipes import METHODS, title
from workbench.token_view import as_json
from workbench.token_view.payload import is_logged
from workbench.types import Feedback, WorkbenchError

SHOWN = 60  # rollouts of a step that are listed
READ = 1024  # rollouts of a step that are read, and sorted
ORDERS = ("lowest", "highest", "disagreement")


def order_choices(method: str) -> list[tuple[str, str]]:
    """What the rollouts can be sorted by, as (words, key), for a run that was paid by `method`; "": by its trainer."""
    reward = f"{title(method) or 'logged'} reward"
    words = (f"{reward}, lowest first", f"{reward}, highest first", "Disagreement, largest first")
    return [(label[0].upper() + label[1:], key) for label, key in zip(words, ORDERS, strict=True)]


def own_method(runs: Runs, name: str | None) -> str:
    """The method that a run was trained or scored with, of several the first; the first of all where nothing was paid yet.

    "" where there are no rows, and where only a trainer's logged numbers are known.

    Raises:
        WorkbenchError: there is no such run.
    """
    entries = runs.index(name).entries if name else ()
    if not name or not entries:
        return ""
    if method := runs.described(name, "config.json").get("method"):
        return str(method)
    try:
        stored = runs.feedback(name, entries[0]).rewards
    except WorkbenchError:  # told where the rows are listed
        stored = {}
    methods = [method for method in (*METHODS, *stored) if method in stored and not is_logged(method)]
    return next(iter(methods), "" if stored else next(iter(METHODS)))


def rollouts(runs: Runs, name: str | None, step: int, order: str) -> str:
    """The rollouts of one step (of all rows, where a run has no steps), each paid by every method, as text for the page."""
    if not name:
        return as_json({})
    try:
        by_step = runs.index(name).by_step
        entries = by_step.get(step) or by_step.get(None, [])
        rows, damaged = _paid(runs, name, entries[:READ])
        own = own_method(runs, name)
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    if not rows and damaged:
        return as_json({"error": f"none of {len(damaged)} rows can be shown: {damaged[0]}"})
    if not rows:  # a run without any says so where its curves would be
        return as_json({"note": "No rollouts are recorded of this step."} if by_step else {})
    ranked = sorted(with_disagreement(rows), key=_key(order, own))
    methods = dict.fromkeys(name for row in rows for name in row.rewards if not is_logged(name))
    scored = {name: sum(row.rewards[name].value is not None for row in rows if name in row.rewards) for name in methods}
    return as_json(
        {
            "methods": [name for name in methods if scored[name] or name == own],
            "scored": {name: [count, len(rows)] for name, count in scored.items()},
            "unscored": {name: _reason(rows, name) for name, count in scored.items() if not count},
            "logged": list(dict.fromkeys(name for row in rows for name in row.rewards if is_logged(name))),
            "sorted": {"by": order if order == ORDERS[2] else own, "order": order},
            "note": _counted(len(entries), step if entries[0].step is not None else None) + _left_out(damaged),
            "rows": [listed_row(row, spread) for row, spread in ranked[:SHOWN]],
        }
    )


def _paid(runs: Runs, name: str, entries: Sequence[Entry]) -> tuple[list[Feedback], list[str]]:
    """The rows that can be read and paid, and why the others cannot."""
    configs = configs_of(runs, name)
    rows, damaged = [], []
    for entry in entries:
        try:
            with damage(f"row {entry.number + 1} of run '{name}'"):
                row = paid([runs.feedback(name, entry)], configs)[0]
                as_json(listed_row(row))
        except WorkbenchError as error:
            damaged.append(str(error))
        else:
            rows.append(row)
    return rows, damaged


def _left_out(damaged: Sequence[str]) -> str:
    count = f"{len(damaged)} {'row is' if len(damaged) == 1 else 'rows are'} left out"
    return f" {count}: {damaged[0]}." if damaged else ""


def _counted(count: int, step: int | None) -> str:
    """How many rollouts there are, and how many of them are listed."""
    total = f"{count} {'rollout' if count == 1 else 'rollouts'}" + (f" of step {step}" if step is not None else "")
    sorted_part = f"; the first {READ} are sorted" if count > READ else ""
    return (
        total
        + sorted_part
        + (f"; the first {SHOWN} in this order are listed" if count > SHOWN else "")
        + ". Click one to open it in Inspect."
    )


def _key(order: str, method: str) -> Any:
    """Sorts (row, disagreement) by the reward of `method` or by the disagreement; those without come last."""

    def key(pair: tuple[Feedback, float | None]) -> tuple[bool, float]:
        row, spread = pair
        value = spread if order == ORDERS[2] else reward_of(row, method)
        return value is None, (value or 0.0) * (1 if order == ORDERS[0] else -1)

    return key


def with_disagreement(rows: Sequence[Feedback]) -> list[tuple[Feedback, float | None]]:
    """Each row with how far the methods disagree about it: the spread of its ranks *(ours)*.

    A method's scored rows are ranked from 0 (paid least) to 1 (paid most), equal ones alike; the disagreement is the highest
    rank less the lowest, and None where fewer than two methods score the row or tell any rows apart. What a trainer logged is
    no method's.
    """
    ranks: list[list[float]] = [[] for _ in rows]
    for method in {name for row in rows for name in row.rewards if not is_logged(name)}:
        values = [row.rewards[method].value if method in row.rewards else None for row in rows]
        distinct = sorted({value for value in values if value is not None})
        if len(distinct) > 1:
            for place, value in enumerate(values):
                if value is not None:
                    ranks[place].append(distinct.index(value) / (len(distinct) - 1))
    return [
        (row, max(row_ranks) - min(row_ranks) if len(row_ranks) > 1 else None)
        for row, row_ranks in zip(rows, ranks, strict=True)
    ]


def _reason(rows: Sequence[Feedback], method: str) -> str:
    """Why a method scored none of the rows, in the words of the first."""
    errors = (row.rewards[method].error for row in rows if method in row.rewards)
    return next((error.message for error in errors if error), "this method has not been applied")


def listed_row(row: Feedback, disagreement: float | None = None) -> dict[str, Any]:
    """What a list shows of a response."""
    outcome = row.verdict("outcome")
    error = (outcome.error if outcome else None) or row.error
    return {
        "id": row.response.id,
        "question": row.response.question.text,
        "text": row.response.text[:400].encode("utf-8", "replace").decode(),
        "outcome": outcome.label if outcome and not outcome.error else None,
        "error": asdict(error) if error else None,
        "values": {method: reward.value for method, reward in row.rewards.items()},
        "reasons": {method: reward.error.message for method, reward in row.rewards.items() if reward.error},
        "disagreement": disagreement,
    }
