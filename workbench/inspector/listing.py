"""Select and sort the rollouts of a run, and measure how far the methods disagree about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from workbench.inspector.opened import configs_of, with_all_rewards
from workbench.inspector.parts import page_json
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json
from workbench.methods import METHODS, title
from workbench.runs.rows import Rows, text_of
from workbench.runs.steps import parts_of, reward_of
from workbench.types import Feedback, JsonMapping, JsonObject, WorkbenchError
from workbench.util.failures import is_logged
from workbench.util.jsonl import encodable, finite

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PAGE = 60  # rollouts per page of the list
SCORED = 1024  # maximum number of rollouts that are scored in order to sort them
CACHED_ROWS = 4096  # scored rows per run
CACHED_TEXTS = 4  # search texts per run whose matches are cached
ORDERS = ("lowest", "highest", "disagreement")
NO_OUTCOME = "none"  # selects rows without an outcome


@dataclass(frozen=True)
class Query:
    """A selection of a run's rollouts, and their order.

    A field that is "" or None does not restrict the selection.

    Attributes:
        step: the training step; None: all steps.
        order: "lowest" or "highest" reward first, or "disagreement": first the rollouts that the
            methods rank most differently.
        text: a text that the answer or the question contains.
        outcome: label of the outcome, such as "correct"; "none": rollouts without an outcome.
        tier: how correctly the training data states the question's facts, such as "known".
        kind: kind of the question, such as "biography".
        low, high: least and greatest accepted value of a number of the rollout.
        of: this number. "": the reward; "part:NAME": a part of the run's main reward;
            "logged:NAME": a number that a trainer logged.
        start: position (from 0) of the first rollout to list.
    """

    step: int | None = None
    order: str = ORDERS[0]
    text: str = ""
    outcome: str = ""
    tier: str = ""
    kind: str = ""
    of: str = ""  # a column of `parts_of`
    low: float | None = None
    high: float | None = None
    start: int = 0

    @property
    def is_filtered(self) -> bool:
        """Whether the query restricts the selection by more than the training step."""
        return self != Query(self.step, self.order, of=self.of, start=self.start)


def query_of(request: JsonMapping) -> Query:
    """Convert a request from the page to a query. A value of a wrong type counts as missing."""
    step, start, order = (request.get(name) for name in ("step", "start", "order"))
    texts = {name: request.get(name) for name in ("text", "outcome", "tier", "kind", "of")}
    return Query(
        step if type(step) is int else None,
        order if order in ORDERS else ORDERS[0],
        low=finite(request.get("low")),
        high=finite(request.get("high")),
        start=max(0, start) if type(start) is int else 0,
        **{name: text[:500] for name, text in texts.items() if isinstance(text, str)},
    )


def own_method(runs: Runs, name: str | None) -> str:
    """Return the method whose reward is the main reward of a run, such as "truthrl".

    For a trained run, this is the method that trained it. For any other run, it is the first method
    with stored rewards, in the order of `METHODS`; if no reward is stored, it is the first of
    `METHODS`. The result is "" in three cases: `name` is None, the run has no rows, or the run has
    only numbers that TRL or verl logged as rewards.

    Raises:
        WorkbenchError: there is no such run.
    """
    if not name or not len(rows := runs.rows(name)):
        return ""
    if method := runs.described(name, "config.json").get("method"):
        return str(method)
    stored = rows.methods or list(METHODS)
    order = (method for method in (*METHODS, *stored) if method in stored)
    return next((method for method in order if not is_logged(method)), "")


@dataclass(frozen=True)
class Record:
    """A run, with the data that are needed to list its rollouts.

    Attributes:
        own: the method whose reward is the run's main reward, from `own_method`.
        configs: method -> config. Rewards that are not stored are computed with it.
        key: `configs` as text. Cached rewards are used only for equal configs.
    """

    runs: Runs
    name: str
    rows: Rows
    own: str
    configs: JsonMapping
    key: str

    @staticmethod
    def of(runs: Runs, name: str) -> Record:
        """Return the record of the run `name`, with the rows that have been read so far."""
        configs = configs_of(runs, name)
        return Record(runs, name, runs.rows(name), own_method(runs, name), configs, repr(configs))

    def columns(self, number: int) -> JsonObject:
        """Return what the list shows of row `number` (from 0): `listed_row`, and "number".

        Rewards that are not stored are computed. Return {"broken": reason} for a damaged row.
        """
        cache, key = self.rows.memory.setdefault("listed", {}), (number, self.key)
        if (row := cache.get(key)) is None:
            try:
                with damage(f"row {number + 1} of run '{self.name}'"):
                    row = self.runs.feedback(self.name, number, self.rows)
                    [scored] = with_all_rewards([row], self.configs)
                    row = listed_row(scored) | {"number": number}
                    as_json(row)  # raises for values that JSON cannot hold
            except WorkbenchError as error:
                row = {"broken": str(error)}
            cache[key] = row
            while len(cache) > CACHED_ROWS:
                cache.pop(next(iter(cache)), None)
        return row

    def values(self, numbers: Iterable[int]) -> list[dict[str, float | None]]:
        """Return the rewards of the rows with these numbers (from 0), one dict for each row.

        The dict is method -> reward. A reward that cannot be computed is None. The dict of a
        damaged row is {}.
        """
        return [self.columns(number).get("values", {}) for number in numbers]


@dataclass(frozen=True)
class Listing:
    """The rows of a run that a query selects.

    Attributes:
        numbers: numbers of the selected rows, in the query's order.
        spreads: row number -> disagreement of the methods, from 0 to 1; {} if not computed.
        left_out: number of rows that are left out, because scoring them would take long.
    """

    numbers: list[int]
    spreads: Mapping[int, float | None]
    left_out: int


def listing(record: Record, query: Query) -> Listing:
    """Return the rows that a query selects, in the query's order.

    In two cases, rewards must be computed, and only the first 1,024 rows (`SCORED`) are used: rows
    are sorted by disagreement, or the run's main reward is not stored.
    """
    from pandas import Series

    rows = record.rows
    table, reward, left_out = rows.table, reward_of(rows, record.own), 0
    if query.step is not None and rows.steps:
        table = table[table["step"] == query.step]
    if record.own and record.own not in rows.methods:  # the reward is not stored
        # scoring a row takes milliseconds, and a run may have many thousands of rows
        table, left_out = table[:SCORED], max(0, len(table) - SCORED)
        values = record.values(table.index)
        reward = Series([row.get(record.own) for row in values], table.index, dtype="float64")
    table = _filtered(record, table, query, reward)
    by_disagreement = query.order == "disagreement"
    spreads: dict[int, float | None] = {}
    if by_disagreement:
        table, left_out = table[:SCORED], left_out + max(0, len(table) - SCORED)
    if by_disagreement or len(table) <= PAGE:
        numbers = table.index.tolist()
        spreads = dict(zip(numbers, disagreement(record.values(numbers)), strict=True))
    key = reward.loc[table.index]
    if by_disagreement:
        key = Series(spreads, table.index, dtype="float64")
    key = key.sort_values(ascending=query.order == "lowest", kind="stable", na_position="last")
    return Listing(key.index.tolist(), spreads, left_out)


def _filtered(record: Record, table: DataFrame, query: Query, value: Series) -> DataFrame:
    if query.outcome:
        label = "" if query.outcome == NO_OUTCOME else query.outcome
        table = table[table["outcome"] == label]
    if query.tier or query.kind:
        matches = {
            key
            for key, question in record.runs.question_info(record.name).items()
            if query.tier in ("", question.tier) and query.kind in ("", question.kind)
        }
        table = table[table["question"].isin(matches)]
    if query.of:
        value = parts_of(record.rows, record.own).get(query.of, value * math.nan)
    # without a bound, rows that were not scored stay
    if query.low is not None:
        table = table[value[table.index] >= query.low]
    if query.high is not None:
        table = table[value[table.index] <= query.high]
    return _with_text(record, table, query.text.casefold()) if query.text.strip() else table


def _with_text(record: Record, table: DataFrame, text: str) -> DataFrame:
    """Return the rows whose answer or question contains the casefolded `text`, ignoring case."""
    memory = record.rows.memory.setdefault("text", {})
    matches: dict[int, bool] = memory.setdefault(text, {})
    while len(memory) > CACHED_TEXTS:
        memory.pop(next(iter(memory)), None)
    infos = record.runs.question_info(record.name)
    questions = {key for key, info in infos.items() if text in info.text.casefold()}
    new = table[~table.index.isin(matches)]
    lines = record.runs.lines(record.name, new["offset"])
    for number, question, line in zip(new.index, new["question"], lines, strict=True):
        matches[number] = question in questions or text in text_of(line).casefold()
    return table[[matches[number] for number in table.index]]


def neighbour(
    runs: Runs, name: str, query: Query, number: int, step: int
) -> tuple[int, int, int] | None:
    """Return the row that is `step` positions after row `number` in the list of a query.

    Returns:
        (number of the row from 0, its position in the list from 1, length of the list). None if the
        list has no such position, or does not contain row `number`.
    """
    numbers = listing(Record.of(runs, name), query).numbers
    place = numbers.index(number) + step if number in numbers else -1
    return (numbers[place], place + 1, len(numbers)) if 0 <= place < len(numbers) else None


def disagreement(values: Sequence[Mapping[str, float | None]]) -> list[float | None]:
    """Return how much the methods disagree about each row, from 0 to 1 *(ours)*.

    Each method ranks the rows by reward, from 0 (lowest) to 1 (highest). The disagreement about a
    row is its highest rank minus its lowest rank. It is None if fewer than two methods rank the
    row. A method that gives all rows the same reward is ignored.

    Args:
        values: for each row, method -> reward.
    """
    from pandas import DataFrame

    rewards = DataFrame(list(values), dtype="float64")
    rewards = rewards[[name for name in rewards if not is_logged(name)]]
    ranks = rewards.rank(method="dense") - 1
    ranks /= ranks.max()  # 0 / 0 for a method with equal rewards, whose ranks are then missing
    spreads = (ranks.max(axis=1) - ranks.min(axis=1)).where(ranks.count(axis=1) > 1)
    return [finite(spread) for spread in spreads]


def listed_row(row: Feedback) -> JsonObject:
    """Return what the list of rollouts shows of a response.

    The keys are "id", "question", "kind" and "tier" of the question, "step", "text" (the first 400
    characters), "outcome", "error", "values" (method -> reward), and "reasons" (method -> why it
    has no reward). The value of "disagreement" is None, because it depends on all rows.
    """
    outcome, question = row.verdict("outcome"), row.response.question
    error = (outcome.error if outcome else None) or row.error
    return {
        "id": row.response.id,
        "question": question.text,
        "kind": question.kind,
        "tier": str(question.meta.get("tier") or ""),
        "step": row.response.step,
        "text": encodable(row.response.text[:400]),
        "outcome": outcome.label if outcome and not outcome.error else None,
        "error": asdict(error) if error else None,
        **rewards_of(row),
        "disagreement": None,
    }


def rewards_of(row: Feedback) -> dict[str, JsonObject]:
    """Return the rewards of a row as {"values": {method: reward}, "reasons": {method: message}}.

    A reward that could not be computed has the value None. Its error message is in "reasons".
    """
    rewards = row.rewards.items()
    return {
        "values": {name: reward.value for name, reward in rewards},
        "reasons": {name: reward.error.message for name, reward in rewards if reward.error},
    }


def order_choices(method: str) -> list[tuple[str, str]]:
    """Return the choices for sorting rollouts, such as ("TruthRL reward, lowest first", "lowest").

    `method` is the run's method, or "" if the reward is a number that a trainer logged.
    """
    reward = f"{title(method) or 'Logged'} reward"
    words = (f"{reward}, lowest first", f"{reward}, highest first", "Disagreement, largest first")
    return list(zip(words, ORDERS, strict=True))


@page_json()
def rollouts(runs: Runs, name: str | None, query: Query) -> JsonObject:
    """Return up to 60 rollouts of run `name` that a query selects, as JSON text.

    The object's "rows" are the rollouts from position `query.start`, with the rewards of all
    methods. Rewards that are not stored are computed. "count" is the number of selected rollouts,
    "note" the sentence above the list, and "choices" the result of `choices_of`. The object is {}
    if `name` is None or the run has no rows, and {"error": message} after a WorkbenchError.
    """
    if not name:
        return {}
    record = Record.of(runs, name)
    if not len(record.rows):  # `curve_data` returns a note for a run without rows
        return {}
    selected = listing(record, query)
    page = [record.columns(number) for number in selected.numbers[query.start :][:PAGE]]
    about = {"choices": choices_of(record), "step": query.step, "missing": record.rows.missing}
    broken = [row["broken"] for row in page if "broken" in row]
    rows = [
        {**row, "disagreement": selected.spreads.get(row["number"])}
        for row in page
        if "broken" not in row
    ]
    if broken and not rows:
        raise WorkbenchError(f"{len(broken)} rows cannot be shown: {broken[0]}")
    if not rows:
        empty = "No rollouts are recorded for this step."
        return {"note": "No rollout matches." if query.is_filtered else empty, **about}
    about |= {"start": query.start, "count": len(selected.numbers), "page": PAGE}
    note = _note(selected, query, record.rows, broken)
    return {"note": note, "rows": rows, **_columns(rows, record.own, query.order), **about}


def _columns(rows: Sequence[JsonObject], own: str, order: str) -> JsonObject:
    """Return the names of the list's columns.

    "methods" names the methods with a column. "unscored" says why other methods have no column.
    """
    names = dict.fromkeys(name for row in rows for name in row["values"])
    methods = [name for name in names if not is_logged(name)]
    scored = {name: sum(row["values"].get(name) is not None for row in rows) for name in methods}
    unscored = {name: "this method has not been applied" for name in methods if not scored[name]}
    for row in reversed(rows):  # the first row's reason is shown
        unscored |= {name: row["reasons"][name] for name in unscored if row["reasons"].get(name)}
    return {
        "methods": [name for name in methods if scored[name] or name == own],
        "scored": {name: [count, len(rows)] for name, count in scored.items()},
        "unscored": unscored,
        "logged": [name for name in names if is_logged(name)],
        "sorted": {"by": order if order == "disagreement" else own, "order": order},
    }


def choices_of(record: Record) -> JsonObject:
    """Return the values by which a run's rollouts can be selected and sorted.

    The keys are "outcomes", "parts" (values of `Query.of`), "tiers" and "kinds" of questions,
    "steps" (the first and the last), "orders" (from `order_choices`), and "own" (the method of the
    run's main reward).
    """
    rows, info = record.rows, record.runs.question_info(record.name)
    questions = [info[key] for key in rows.table["question"].unique() if key in info]
    parts = parts_of(rows, record.own).items()
    return {
        "outcomes": [label or NO_OUTCOME for label in rows.table["outcome"].unique()],
        "parts": [name for name, values in parts if values.notna().any()],
        "tiers": sorted({question.tier for question in questions} - {""}),
        "kinds": sorted({question.kind for question in questions} - {""}),
        "steps": [rows.steps[0], rows.steps[-1]] if rows.steps else [],
        "orders": order_choices(record.own),
        "own": record.own,
    }


def _note(selected: Listing, query: Query, rows: Rows, broken: Sequence[str]) -> str:
    """Return the sentences above the list: how many rollouts match, and which are listed."""
    count = len(selected.numbers)
    note = f"{count:,} {'rollout' if count == 1 else 'rollouts'}"
    note += f" of step {query.step}" if query.step in rows.steps else ""
    note += " that match" if query.is_filtered else ""
    if count > PAGE:
        last = min(query.start + PAGE, count)
        note += f"; {query.start + 1:,} to {last:,} in this order are listed"
    if selected.left_out:
        note += f"; {selected.left_out:,} more were not scored for sorting: select fewer"
    note += ". Click one to open it in Inspect."
    if broken:
        rest = "1 row is" if len(broken) == 1 else f"{len(broken)} rows are"
        note += f" {rest} left out: {broken[0]}."
    if rows.missing:
        note += f" The run is still being read: {rows.missing:,} earlier rows will follow."
    return note
