"""The response that is open: where it comes from, what all methods pay for it, and how the page
gets it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from workbench.inspector.annotated import labels
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json, payload
from workbench.inspector.token_view.payload import Lookup
from workbench.methods import METHODS, checks_needed, method_configs, reward_fns, title
from workbench.pipeline import rescore
from workbench.types import Failure, Feedback, Reward, WorkbenchError
from workbench.util.config import restore, settings
from workbench.util.failures import is_logged

KEPT = 64  # open responses that are remembered, for what-if and export


@dataclass(frozen=True)
class Opened:
    """One response with the group it was sampled in, and the configs that its rewards were paid
    by.
    """

    feedback: Feedback
    group: tuple[Feedback, ...]
    name: str
    configs: Mapping[str, Any]
    link: str = ""
    method: str | None = None
    run: str | None = None
    note: str = ""  # what is said above it
    labels: Mapping[int, str] = field(default_factory=dict)  # what a person said of its claims
    lookup: Lookup | None = field(default=None, compare=False)

    def data(self) -> dict[str, Any]:
        """What the page shows of it."""
        view = payload(self.feedback, self.method, self.group, name=self.name, lookup=self.lookup)
        for claim in view["claims"]:
            claim["person"] = self.labels.get(claim["id"])
        return view | {"link": self.link}


STILL_READ = (
    "This record is large and is being read for the first time: advantages, and whatever else needs"
    " the answer's group, are shown when the answer is opened again in some seconds."
)
NOTHING = as_json(None)  # the view's value while no response is open

_opened: OrderedDict[str, Opened] = OrderedDict()
_lock = Lock()


def show(opened: Opened) -> str:
    """Remember an open response and return it as text for the page.

    Raises:
        WorkbenchError: the row holds what cannot be shown.
    """
    with damage(opened.name):
        data = opened.data()
        text = as_json(data)
    with _lock:
        _opened[data["key"]] = opened
        _opened.move_to_end(data["key"])
        while len(_opened) > KEPT:
            _opened.popitem(last=False)
    return text


def recall(key: str) -> Opened:
    """The open response of that key."""
    with _lock:
        opened = _opened.get(key)
    if opened is None:
        raise WorkbenchError("this response is no longer open: open it again")
    return opened


def open_feedback(feedback: Feedback, group: Sequence[Feedback], name: str) -> Opened:
    """A response that has no run: paid by every method with its default config."""
    configs = method_configs()
    rows = paid([feedback, *group], configs)
    return Opened(rows[0], tuple(rows[1:]), name, configs=configs)


def open_row(runs: Runs, name: str, row: str, method: str | None = None) -> Opened:
    """A stored row: its own rewards as they were paid, the other methods' by their default configs.

    Raises:
        WorkbenchError: no such run, row or method.
    """
    number, whole = runs.number(name, row), not runs.rows(name).missing
    feedback = runs.feedback(name, number)
    configs = configs_of(runs, name)
    with damage(f"row {number + 1} of run '{name}'"):
        rows = paid([feedback, *runs.group(name, number)], configs)
    methods = [label for label in rows[0].rewards if not is_logged(label)]
    if method and method not in methods:
        raise WorkbenchError(f"no method '{method[:40]}': choose one of {', '.join(methods)}")
    first = method or next((label for label in feedback.rewards if not is_logged(label)), None)
    said, note = _said(runs, name, feedback)
    link, lookup = (
        "?" + urlencode({"run": name, "id": row}, errors="replace"),
        stored_evidence(runs, name),
    )
    return Opened(
        rows[0],
        tuple(rows[1:]),
        f"{name} · {row}",
        configs=configs,
        link=link,
        method=first,
        run=name,
        note=note if whole else STILL_READ,
        labels=said,
        lookup=lookup,
    )


def _said(runs: Runs, name: str, feedback: Feedback) -> tuple[dict[int, str], str]:
    """What a person said of the row's claims; or, where that cannot be read, nothing and why."""
    try:
        return labels(runs, name, feedback), ""
    except WorkbenchError as error:
        return {}, f"What a person said of this answer is not shown: {error}"


def stored_evidence(runs: Runs, name: str) -> Lookup:
    """The text of what was retrieved for a claim, which stands beside the rows; they refer to it
    by id.
    """

    def lookup(item: Mapping[str, Any]) -> tuple[str, str] | None:
        passage = runs.passage(name, str(item.get("passage")))
        return (passage.title or passage.id, passage.text) if passage else None

    return lookup


def configs_of(runs: Runs, name: str) -> dict[str, Any]:
    """The methods' configs: those that the run was trained or scored with, else the defaults."""
    with damage(f"run '{name}': its settings"):
        stored = runs.settings(name)
        return {
            method: _restored(config, stored.get(method, {}))
            for method, config in method_configs().items()
        }


def _restored(config: Any, stored: Mapping[str, Any]) -> Any:
    """The config with the stored values of its fields; those of another version's fields are
    passed over.
    """
    restored = restore(config, stored)
    for (name, value, _), (_, usual, _) in zip(settings(restored), settings(config), strict=True):
        if not _fits(value, usual):
            raise ValueError(f"{name} is {value!r}")
    return restored


def _fits(value: Any, usual: Any) -> bool:
    """Whether a stored value can stand where a config has a number, a flag or a text."""
    if value is None or usual is None or isinstance(usual, tuple):
        return True
    if isinstance(usual, bool) or not isinstance(usual, int | float):
        return isinstance(value, type(usual))
    return isinstance(value, int | float) and not isinstance(value, bool)


def paid(rows: Sequence[Feedback], configs: Mapping[str, Any]) -> list[Feedback]:
    """The rows with the reward of every method: stored ones stay, the others are paid from the row.

    A trainer's logged numbers stay as well, after the methods.
    """
    paid_rows = []
    for row in rows:
        filled = pay(
            row, {name: config for name, config in configs.items() if name not in row.rewards}
        )
        order = [name for name in METHODS if name in filled.rewards]
        extra = [name for name in filled.rewards if name not in order]
        rewards = {name: filled.rewards[name] for name in [*order, *extra]}
        paid_rows.append(replace(filled, rewards=rewards))
    return paid_rows


def pay(row: Feedback, configs: Mapping[str, Any]) -> Feedback:
    """The row with the rewards of these methods, paid anew.

    A method that pays without a verdict that it asks for, as for a broken form, was not asked
    for when the row was checked, and what it would pay is not known: that is no reward.
    """
    row = rescore(row, reward_fns(configs))
    for method, config in configs.items():
        missing = [
            check for check in checks_needed({method: config}) if not _was_checked(row, check)
        ]
        if missing and row.rewards[method].value is not None:
            row = row.with_reward(method, Reward(None, error=_not_asked(method, missing)))
    return row


CHECKED = {
    "fact": "the truth of its claims",
    "single_pass": "the truth of its claims",
    "outcome": "its outcome",
    "checklist": "the facts of a checklist",
    "claim_checklist": "its claims, by the checklist",
    "reasoning": "its reasoning",
    "general": "its quality in general",
}


def _was_checked(row: Feedback, check: str) -> bool:
    """Whether the row holds what a check gives, or its failure."""
    if check in ("fact", "single_pass"):  # which give every answer but an empty one its sentences
        return bool(row.sentences or row.claims or not row.response.text.strip())
    if check == "claim_checklist":
        return not row.claims or any(
            v.aspect == "checklist" and v.target.startswith("claim:") for v in row.verdicts
        )
    if check == "checklist":
        return any(v.aspect == "checklist" and v.target.startswith("item:") for v in row.verdicts)
    return any(check in (v.target, v.aspect) for v in row.verdicts)


def _not_asked(method: str, missing: Sequence[str]) -> Failure:
    checks = " and ".join(dict.fromkeys(CHECKED.get(check, check) for check in missing))
    message = (
        f"{title(method)} was not asked for when this answer was checked: no verdict on {checks}"
    )
    return Failure("reward", "not_asked", message)
