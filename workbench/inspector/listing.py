"""The rollouts of a run that a query selects, in order, with the reward of every method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from workbench.failures import is_logged
from workbench.inspector.opened import configs_of, paid
from workbench.inspector.runs import Runs, damage
from workbench.recipes import METHODS, title
from workbench.runs.rows import Rows, finite, text_of
from workbench.runs.steps import parts_of, reward_of
from workbench.token_view import as_json
from workbench.types import Feedback, WorkbenchError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PAGE = 60  # rollouts that are listed at once
CACHED_ROWS = 4096  # scored rows of a run that are kept
CACHED_TEXTS = 4  # searched texts whose finds are kept
ORDERS = ("lowest", "highest")
NO_OUTCOME = "none"  # stands for an outcome: rows without one
Listed = dict[str, Any]


@dataclass(frozen=True)
class Query:
    """Which rollouts, in which order, from which on. Without a step: those of all steps."""

    step: int | None = None
    order: str = ORDERS[0]
    text: str = ""
    outcome: str = ""
    tier: str = ""
    kind: str = ""
    of: str = ""  # what `low` and `high` bound: a column of `parts_of`, or the reward
    low: float | None = None
    high: float | None = None
    start: int = 0

    @property
    def is_filtered(self) -> bool:
        return self != Query(self.step, self.order, start=self.start)


def query_of(request: Mapping[str, Any]) -> Query:
    """A query as the page sends it; a value of another kind counts as missing."""
    kinds: dict[str, Callable[[Any], Any]] = {
        "step": lambda value: value if type(value) is int else None,
        "start": lambda value: max(0, value) if type(value) is int else 0,
        "order": lambda value: value if value in ORDERS else ORDERS[0],
        "low": finite,
        "high": finite,
    }
    text = lambda value: value[:500] if isinstance(value, str) else ""  # noqa: E731
    values = {
        field.name: kinds.get(field.name, text)(request.get(field.name)) for field in fields(Query)
    }
    return Query(**values)


def own_method(runs: Runs, name: str | None) -> str:
    """The method that a run was trained or scored with, the first of several; the first of all
    methods where nothing was scored yet; "" where only a trainer's numbers are known.

    Raises:
        WorkbenchError: there is no such run.
    """
    if not name or not len(rows := runs.rows(name)):
        return ""
    if method := runs.described(name, "config.json").get("method"):
        return str(method)
    stored = rows.methods
    methods = [
        method for method in (*METHODS, *stored) if method in stored and not is_logged(method)
    ]
    return next(iter(methods), "" if stored else next(iter(METHODS)))


@dataclass(frozen=True)
class Record:
    """A run as it is listed: its rows, its own method, and the configs that score the others."""

    runs: Runs
    name: str
    rows: Rows
    own: str
    configs: Mapping[str, Any]
    key: str  # of the configs, for the cache

    @staticmethod
    def of(runs: Runs, name: str) -> Record:
        configs = configs_of(runs, name)
        return Record(runs, name, runs.rows(name), own_method(runs, name), configs, repr(configs))

    def listed(self, number: int) -> Listed:
        """What a list shows of a row, scored by every method, or {"broken": why}; cached."""
        cache, key = self.rows.memory.setdefault("listed", {}), (number, self.key)
        if (row := cache.get(key)) is None:
            try:
                with damage(f"row {number + 1} of run '{self.name}'"):
                    row = self.runs.feedback(self.name, number, self.rows)
                    [scored] = paid([row], self.configs)
                    row = listed_row(scored)
                    as_json(row)
            except WorkbenchError as error:
                row = {"broken": str(error)}
            cache[key] = row
            while len(cache) > CACHED_ROWS:
                cache.pop(next(iter(cache)), None)
        return row


def listing(record: Record, query: Query) -> list[int]:
    """The numbers of the rows that a query selects, sorted by the stored reward of the run's own
    method; rows without a stored reward stand last.
    """
    rows = record.rows
    table, reward = rows.table, reward_of(rows, record.own)
    if query.step is not None and rows.steps:
        table = table[table["step"] == query.step]
    table = _filtered(record, table, query, reward)
    lowest_first = query.order == "lowest"
    values = reward.loc[table.index].sort_values(ascending=lowest_first, kind="stable")
    return list(values.index.tolist())


def _filtered(record: Record, table: DataFrame, query: Query, value: Series) -> DataFrame:
    asked = record.runs.asked(record.name) if query.tier or query.kind else {}
    if query.outcome:
        label = "" if query.outcome == NO_OUTCOME else query.outcome
        table = table[table["outcome"] == label]
    if query.tier or query.kind:
        like = {
            key
            for key, one in asked.items()
            if query.tier in ("", one.tier) and query.kind in ("", one.kind)
        }
        table = table[table["question"].isin(like)]
    if query.of or query.low is not None or query.high is not None:
        if query.of:
            value = parts_of(record.rows, record.own).get(query.of, value * math.nan)
        low = -math.inf if query.low is None else query.low
        high = math.inf if query.high is None else query.high
        table = table[value.loc[table.index].between(low, high)]
    return _with_text(record, table, query.text.casefold()) if query.text.strip() else table


def _with_text(record: Record, table: DataFrame, text: str) -> DataFrame:
    """The rows with a text in their answer or question, in any case; each is read once for it."""
    memory = record.rows.memory.setdefault("text", {})
    finds: dict[int, bool] = memory.setdefault(text, {})
    while len(memory) > CACHED_TEXTS:
        memory.pop(next(iter(memory)), None)
    asked = record.runs.asked(record.name)
    questions = {key for key, one in asked.items() if text in one.text.casefold()}
    new = table[~table.index.isin(finds)]
    lines = record.runs.lines(record.name, new["offset"])
    for number, question, line in zip(new.index, new["question"], lines, strict=True):
        finds[number] = question in questions or text in text_of(line).casefold()
    return table[[finds[number] for number in table.index]]


def listed_row(row: Feedback) -> Listed:
    """What a list shows of a response."""
    outcome, question = row.verdict("outcome"), row.response.question
    error = (outcome.error if outcome else None) or row.error
    return {
        "id": row.response.id,
        "question": question.text,
        "kind": question.kind,
        "tier": str(question.meta.get("tier") or ""),
        "step": row.response.step,
        "text": row.response.text[:400].encode("utf-8", "replace").decode(),
        "outcome": outcome.label if outcome and not outcome.error else None,
        "error": asdict(error) if error else None,
        **rewards_of(row),
    }


def rewards_of(row: Feedback) -> dict[str, dict[str, Any]]:
    """A row's rewards by method, and why those without a value have none."""
    errors = {name: reward.error for name, reward in row.rewards.items() if reward.error}
    return {
        "values": {name: reward.value for name, reward in row.rewards.items()},
        "reasons": {name: error.message for name, error in errors.items()},
    }


def order_choices(method: str) -> list[tuple[str, str]]:
    """The orders as (words, key), for a run with rewards of `method`, or ("") of its trainer."""
    reward = f"{title(method) or 'logged'} reward"
    return [(f"{reward[0].upper()}{reward[1:]}, {order} first", order) for order in ORDERS]


def rollouts(runs: Runs, name: str | None, query: Query) -> str:
    """A page of the rollouts that a query selects, scored by every method, as JSON text."""
    if not name:
        return as_json({})
    try:
        record = Record.of(runs, name)
        numbers = listing(record, query)
        shown = [record.listed(number) for number in numbers[query.start :][:PAGE]]
        about = {"choices": choices_of(record), "step": query.step}
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    broken = [row["broken"] for row in shown if "broken" in row]
    rows = [row for row in shown if "broken" not in row]
    if broken and not rows:
        return as_json({"error": f"none of {len(broken)} rows can be shown: {broken[0]}"})
    if not len(record.rows):  # a run without any says so where its curves would be
        return as_json({})
    if not rows:
        none = "No rollouts are recorded of this step."
        return as_json({"note": "No rollout matches." if query.is_filtered else none, **about})
    about |= {"start": query.start, "count": len(numbers), "page": PAGE}
    note = _note(len(numbers), query, record.rows, broken)
    return as_json({"note": note, "rows": rows, **_columns(rows, record.own, query.order), **about})


def _columns(rows: Sequence[Listed], own: str, order: str) -> dict[str, Any]:
    """The methods that rows are listed with, and why the others are not."""
    names = dict.fromkeys(name for row in rows for name in row["values"])
    methods = [name for name in names if not is_logged(name)]
    scored = {name: sum(row["values"].get(name) is not None for row in rows) for name in methods}
    reasons = {
        name: next(
            filter(None, (row["reasons"].get(name) for row in rows)),
            "this method has not been applied",
        )
        for name, count in scored.items()
        if not count
    }
    return {
        "methods": [name for name in methods if scored[name] or name == own],
        "scored": {name: [count, len(rows)] for name, count in scored.items()},
        "unscored": reasons,
        "logged": [name for name in names if is_logged(name)],
        "sorted": {"by": own, "order": order},
    }


def choices_of(record: Record) -> dict[str, Any]:
    """The values that a run's rollouts can be selected by."""
    rows, asked = record.rows, record.runs.asked(record.name)
    if "choices" not in rows.derived:
        parts = parts_of(rows, record.own)
        rows.derived["choices"] = {
            "outcomes": [label or NO_OUTCOME for label in rows.table["outcome"].unique()],
            "questions": rows.table["question"].unique().tolist(),
            "parts": [name for name, values in parts.items() if values.notna().any()],
        }
    choices = dict(rows.derived["choices"])
    questions = [asked[key] for key in choices.pop("questions") if key in asked]
    return {
        **choices,
        "tiers": sorted({one.tier for one in questions} - {""}),
        "kinds": sorted({one.kind for one in questions} - {""}),
        "steps": [rows.steps[0], rows.steps[-1]] if rows.steps else [],
        "orders": order_choices(record.own),
        "own": record.own,
    }


def _note(count: int, query: Query, rows: Rows, broken: Sequence[str]) -> str:
    """How many rollouts there are, and which of them are listed."""
    note = f"{count:,} {'rollout' if count == 1 else 'rollouts'}"
    note += f" of step {query.step}" if query.step in rows.steps else ""
    note += " that match" if query.is_filtered else ""
    if count > PAGE:
        last = min(query.start + PAGE, count)
        note += f"; {query.start + 1:,} to {last:,} in this order are listed"
    note += ". Click one to open it in Inspect."
    if broken:
        rest = "1 row is" if len(broken) == 1 else f"{len(broken)} rows are"
        note += f" {rest} left out: {broken[0]}."
    return note
