"""Which rollouts of a run are chosen, what they are sorted by, and how far the methods disagree
about each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from workbench.failures import is_logged
from workbench.inspector.opened import configs_of, paid
from workbench.inspector.runs import Runs, damage
from workbench.recipes import METHODS
from workbench.runs.rows import Entry, Index, finite, text_of
from workbench.runs.steps import parts_of, reward_of
from workbench.token_view import as_json
from workbench.types import Feedback, WorkbenchError

PAGE = 60  # rollouts that are listed at once
READ = 1024  # rollouts that are paid anew to be sorted by what is not stored
REMEMBERED = 4096  # rows of a run whose payment is remembered
SOUGHT = 4  # texts whose finds are remembered
ORDERS = ("lowest", "highest", "disagreement")
NO_OUTCOME = "none"  # in the place of an outcome: rows without one
Listed = dict[str, Any]
Valued = Callable[[Entry], float | None]


@dataclass(frozen=True)
class Query:
    """Which rollouts, in which order, and from which on. Without a step, those of all steps."""

    step: int | None = None
    order: str = ORDERS[0]
    text: str = ""
    outcome: str = ""
    tier: str = ""
    kind: str = ""
    of: str = ""  # what `low` and `high` are about: a column of `parts_of`, or the reward
    low: float | None = None
    high: float | None = None
    start: int = 0


def query_of(request: Mapping[str, Any]) -> Query:
    """A query as the page asks it; what is none of its kind is as if it had not been said."""
    kinds: dict[str, Callable[[Any], Any]] = {
        "step": _whole,
        "start": _whole,
        "low": finite,
        "high": finite,
    }
    given = {
        field.name: kinds.get(field.name, _text)(request.get(field.name)) for field in fields(Query)
    }
    given["order"] = given["order"] if given["order"] in ORDERS else ORDERS[0]
    return Query(**{**given, "start": max(0, given["start"] or 0)})


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _text(value: Any) -> str:
    return value[:500] if isinstance(value, str) else ""


def own_method(runs: Runs, name: str | None) -> str:
    """The method that a run was trained or scored with, of several the first; the first of all
    where nothing was paid yet.

    "" where there are no rows, and where only a trainer's logged numbers are known.

    Raises:
        WorkbenchError: there is no such run.
    """
    index = runs.index(name) if name else Index()
    if not name or not index.entries:
        return ""
    if method := runs.described(name, "config.json").get("method"):
        return str(method)
    stored = [method for method, part in index.entries[0].shape if not part]
    methods = [
        method for method in (*METHODS, *stored) if method in stored and not is_logged(method)
    ]
    return next(iter(methods), "" if stored else next(iter(METHODS)))


@dataclass(frozen=True)
class Record:
    """A run as it is listed: its rows, the method whose reward counts, and the configs that the
    others are paid by.
    """

    runs: Runs
    name: str
    index: Index
    own: str
    configs: Mapping[str, Any]
    paid_by: str  # the configs, as a key of what was paid

    @staticmethod
    def of(runs: Runs, name: str, *, whole: bool = False) -> Record:
        """The run as far as it is read; `whole`: with all its rows, however long they take."""
        configs, index = (
            configs_of(runs, name),
            runs.whole_index(name) if whole else runs.index(name),
        )
        return Record(runs, name, index, own_method(runs, name), configs, repr(configs))

    def listed(self, entry: Entry) -> Listed:
        """What a list shows of a row, paid by every method; of one that cannot be, {"broken":
        why}. Each row is paid once.
        """
        memory, key = self.index.memory.setdefault("paid", {}), (entry.number, self.paid_by)
        if (row := memory.get(key)) is None:
            try:
                with damage(f"row {entry.number + 1} of run '{self.name}'"):
                    row = listed_row(
                        paid([self.runs.feedback(self.name, entry)], self.configs)[0]
                    ) | {"number": entry.number}
                    as_json(row)
            except WorkbenchError as error:
                row = {"broken": str(error)}
            memory[key] = row
            while len(memory) > REMEMBERED:
                memory.pop(next(iter(memory)), None)
        return row

    def spreads(self, entries: Sequence[Entry]) -> dict[int, float | None]:
        """The methods' disagreement about each of these rows, by its number."""
        spreads = disagreement([self.listed(entry).get("values", {}) for entry in entries])
        return {entry.number: spread for entry, spread in zip(entries, spreads, strict=True)}


@dataclass(frozen=True)
class Listing:
    """The rollouts of a query in their order, and the disagreement about them, where it was
    asked for.
    """

    entries: Sequence[Entry]
    spreads: Mapping[int, float | None]
    left_out: int = 0  # for what they are sorted by, only so many were paid


def listing(record: Record, query: Query) -> Listing:
    """The rows that a query chooses, sorted.

    By the run's own reward all of them are sorted, since it is stored. What is not, as the
    disagreement of the methods, is paid anew for the first `READ`, and once: the rows of a
    record do not change.
    """
    entries, most = _of_step(record.index, query.step), math.inf
    value: Valued = lambda entry: reward_of(entry, record.own)  # noqa: E731
    if record.own and record.own not in record.index.methods():
        most, paid_now = (
            READ,
            {entry.number: record.listed(entry).get("values", {}) for entry in entries[:READ]},
        )
        value = lambda entry: paid_now[entry.number].get(record.own)  # noqa: E731
    entries, more = (entries, 0) if most == math.inf else (entries[:READ], len(entries[READ:]))
    entries = _filtered(record, entries, query, value)
    if query.order != ORDERS[2]:
        spreads = record.spreads(entries) if len(entries) <= PAGE else {}
        return Listing(
            _sorted(entries, value, 1 if query.order == ORDERS[0] else -1), spreads, more
        )
    spreads = record.spreads(entries[:READ])
    return Listing(
        _sorted(entries[:READ], lambda entry: spreads[entry.number], -1),
        spreads,
        more + len(entries[READ:]),
    )


def _of_step(index: Index, step: int | None) -> list[Entry]:
    if step is None or set(index.by_step) <= {None}:
        return index.entries[:]
    return index.by_step.get(step, index.by_step.get(None, []))[:]


def _sorted(entries: Sequence[Entry], value: Valued, sign: int) -> list[Entry]:
    """By their values, those without one last."""
    valued = [(value(entry), entry) for entry in entries]
    known = sorted(
        ((sign * number, entry) for number, entry in valued if number is not None),
        key=lambda pair: pair[0],
    )
    return [*(entry for _, entry in known), *(entry for number, entry in valued if number is None)]


def _filtered(record: Record, entries: list[Entry], query: Query, value: Valued) -> list[Entry]:
    if query.outcome:
        label = None if query.outcome == NO_OUTCOME else query.outcome
        entries = [entry for entry in entries if entry.outcome == label]
    if query.tier or query.kind:
        asked = record.runs.asked(record.name)
        like = {
            key
            for key, one in asked.items()
            if query.tier in ("", one.tier) and query.kind in ("", one.kind)
        }
        entries = [entry for entry in entries if entry.question in like]
    if query.of:
        value = lambda entry: parts_of(entry, record.own).get(query.of)  # noqa: E731
    if query.of or query.low is not None or query.high is not None:
        low, high = (
            (-math.inf if query.low is None else query.low),
            (math.inf if query.high is None else query.high),
        )
        entries = [
            entry
            for entry in entries
            if (number := value(entry)) is not None and low <= number <= high
        ]
    return _with_text(record, entries, query.text.casefold()) if query.text.strip() else entries


def _with_text(record: Record, entries: list[Entry], sought: str) -> list[Entry]:
    """The rows that have a text in their answer or their question, whatever its case; each row
    is read once for it.
    """
    memory = record.index.memory.setdefault("text", {})
    finds: dict[int, bool] = memory.setdefault(sought, {})
    while len(memory) > SOUGHT:
        memory.pop(next(iter(memory)), None)
    questions = {
        key for key, one in record.runs.asked(record.name).items() if sought in one.text.casefold()
    }
    new = [entry for entry in entries if entry.number not in finds]
    for entry, line in zip(new, record.runs.lines(record.name, new), strict=True):
        finds[entry.number] = entry.question in questions or sought in text_of(line).casefold()
    return [entry for entry in entries if finds[entry.number]]


def neighbour(
    runs: Runs, name: str, query: Query, row: str, step: int
) -> tuple[Entry, int, int] | None:
    """The row `step` places after another in the list that it was opened from, its place there
    and the length of the list.
    """
    entries = listing(Record.of(runs, name), query).entries
    place = next((place for place, entry in enumerate(entries) if entry.id == row), None)
    if place is None or not 0 <= place + step < len(entries):
        return None
    return entries[place + step], place + step + 1, len(entries)


def disagreement(values: Sequence[Mapping[str, float | None]]) -> list[float | None]:
    """How far the methods disagree about each row: the spread of its ranks *(ours)*; `values`
    are its rewards by method.

    A method's scored rows are ranked from 0 (paid least) to 1 (paid most), equal ones alike; the
    disagreement is the highest rank less the lowest, and None where fewer than two methods score
    the row or tell any rows apart. What a trainer logged is no method's.
    """
    ranks: list[list[float]] = [[] for _ in values]
    for method in {name for row in values for name in row if not is_logged(name)}:
        distinct = sorted({value for row in values if (value := row.get(method)) is not None})
        place = (
            {value: number / (len(distinct) - 1) for number, value in enumerate(distinct)}
            if len(distinct) > 1
            else {}
        )
        for row, row_ranks in zip(values, ranks, strict=True):
            if (value := row.get(method)) is not None and place:
                row_ranks.append(place[value])
    return [max(row_ranks) - min(row_ranks) if len(row_ranks) > 1 else None for row_ranks in ranks]


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
        "values": {method: reward.value for method, reward in row.rewards.items()},
        "reasons": {
            method: reward.error.message for method, reward in row.rewards.items() if reward.error
        },
        "disagreement": None,
    }
