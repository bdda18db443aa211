"""The response that is open: where it comes from, what all methods pay for it, and how the page gets it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from workbench.inspector.runs import Runs
from workbench.token_view import as_json, payload
from workbench.token_view.payload import Lookup
from workbench.types import Feedback, WorkbenchError

KEPT = 64  # open responses that are remembered, for what-if and export


@dataclass(frozen=True)
class Opened:
    """One response with the group it was sampled in, and the configs that its rewards were paid by."""

    feedback: Feedback
    group: tuple[Feedback, ...]
    name: str
    configs: Mapping[str, Any]
    link: str = ""
    method: str | None = None
    ratios: tuple[float, ...] = ()
    run: str | None = None
    lookup: Lookup | None = field(default=None, compare=False)

    def data(self) -> dict[str, Any]:
        """What the page shows of it."""
        shown = payload(self.feedback, self.method, self.group, name=self.name, lookup=self.lookup, ratios=self.ratios)
        return shown | {"link": self.link}


NOTHING = as_json(None)  # the view's value while no response is open

_opened: OrderedDict[str, Opened] = OrderedDict()
_lock = Lock()


def show(opened: Opened) -> str:
    """Remember an open response and return it as text for the page."""
    data = opened.data()
    with _lock:
        _opened[data["key"]] = opened
        _opened.move_to_end(data["key"])
        while len(_opened) > KEPT:
            _opened.popitem(last=False)
    return as_json(data)


def recall(key: str) -> Opened:
    """The open response of that key."""
    with _lock:
        found = _opened.get(key)
    if found is None:
        raise WorkbenchError("this response is no longer open: open it again")
    return found


def open_feedback(feedback: Feedback, group: Sequence[Feedback], name: str, **more: Any) -> Opened:
    """A response that has no run: paid by every method with its default config."""
    from workbench.recipes import method_configs

    configs = method_configs()
    rows = paid([feedback, *group], configs)
    return Opened(rows[0], tuple(rows[1:]), name, configs, **more)


def open_row(runs: Runs, name: str, row: str, method: str | None = None) -> Opened:
    """A stored row: its own rewards as they were paid, the other methods' by their default configs.

    Raises:
        WorkbenchError: no such run, row or method.
    """
    entry = runs.entry(name, row)
    feedback, ratios = runs.feedback(name, entry)
    configs = configs_of(runs, name)
    rows = paid([feedback, *runs.group(name, entry)], configs)
    if method and method not in rows[0].rewards:
        raise WorkbenchError(f"no method '{method[:40]}': choose one of {', '.join(rows[0].rewards)}")
    first = method or next(iter(feedback.rewards), None)
    link, lookup = "?" + urlencode({"run": name, "id": row}), stored_evidence(runs, name)
    return Opened(rows[0], tuple(rows[1:]), f"{name} · {row}", configs, link, first, ratios, name, lookup)


def stored_evidence(runs: Runs, name: str) -> Lookup:
    """The text of what was retrieved for a claim, which stands beside the rows; they refer to it by id."""

    def lookup(item: Mapping[str, Any]) -> tuple[str, str] | None:
        passage = runs.passages(name).get(str(item.get("passage")))
        return (passage.title or passage.id, passage.text) if passage else None

    return lookup


def configs_of(runs: Runs, name: str) -> dict[str, Any]:
    """The methods' configs: the run's own for its method, else the defaults."""
    from workbench.recipes import method_configs

    configs, stored = method_configs(), runs.described(name, "config.json")
    own = configs.get(stored.get("method", ""))
    if own is not None:
        known = {one.name for one in fields(own)} & set(stored.get("config", {}))
        configs[stored["method"]] = replace(own, **{key: stored["config"][key] for key in known})
    return configs


def paid(rows: Sequence[Feedback], configs: Mapping[str, Any]) -> list[Feedback]:
    """The rows with the reward of every method: stored ones stay, the others are paid from the row."""
    from workbench.recipes import METHODS

    found = []
    for row in rows:
        filled = pay(row, {name: config for name, config in configs.items() if name not in row.rewards})
        order = [name for name in METHODS if name in filled.rewards]
        extra = [name for name in filled.rewards if name not in order]
        found.append(_in_order(filled, [*order, *extra]))
    return found


def pay(row: Feedback, configs: Mapping[str, Any]) -> Feedback:
    """The row with the rewards of these methods, paid anew."""
    from workbench.grade import rescore
    from workbench.recipes import reward_fns

    return rescore(row, reward_fns(configs))


def _in_order(row: Feedback, names: Sequence[str]) -> Feedback:
    return replace(row, rewards={name: row.rewards[name] for name in names})
