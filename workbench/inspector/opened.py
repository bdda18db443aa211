"""Open a response: compute its rewards by every method, cache it, and return its data as JSON."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from urllib.parse import urlencode

from workbench.inspector.annotated import labels
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json, payload
from workbench.inspector.token_view.payload import Lookup
from workbench.methods import METHODS, checks_needed, method_configs, reward_fns, title
from workbench.pipeline import rescore
from workbench.types import Failure, Feedback, JsonMapping, JsonObject, Reward, WorkbenchError
from workbench.util.config import Config, restore, settings
from workbench.util.failures import is_logged

CACHED = 64  # open responses in memory, for what-if and export


@dataclass(frozen=True)
class Opened:
    """A response that is open in the inspector.

    Attributes:
        feedback: the response with the rewards of every method.
        group: the responses to the same prompt, each with the rewards of every method.
        name: the title on the page.
        configs: method -> config of its reward.
        method: the method whose rewards are shown first; None: the first of `feedback.rewards`.
        run: name of the response's run; None for an answer that is not stored.
        note: text shown above the response.
        labels: claim id -> label that a person gave.
        lookup: evidence item -> (title, text) of its passage, which is stored with the run, or
            None if there is no such passage. None for an answer that is not stored.
    """

    feedback: Feedback
    group: tuple[Feedback, ...]
    name: str
    configs: JsonMapping
    method: str | None = None
    run: str | None = None
    note: str = ""
    labels: Mapping[int, str] = field(default_factory=dict)
    lookup: Lookup | None = field(default=None, compare=False)

    def data(self) -> JsonObject:
        """Return the data that the page draws: the result of `payload`, with two more keys.

        * "link": the part of the URL that opens the response, "?run=…&id=…"; "" if it is not
          stored.
        * "person", in each claim: the label that a person gave; None without a label.
        """
        view = payload(self.feedback, self.method, self.group, name=self.name, lookup=self.lookup)
        for claim in view["claims"]:
            claim["person"] = self.labels.get(claim["id"])
        place = {"run": self.run, "id": self.feedback.response.id}
        return view | {"link": "?" + urlencode(place, errors="replace") if self.run else ""}


INCOMPLETE = (
    "The run is large and is being read for the first time. Advantages need the answer's whole"
    " group: open the answer again in some seconds to see them."
)
NOTHING = as_json(None)  # the view's value when no response is open

_opened: OrderedDict[str, Opened] = OrderedDict()
_lock = Lock()  # protects `_opened`, because the page's functions run in threads


def show(opened: Opened) -> str:
    """Cache an open response, and return its data as JSON text for the page.

    `recall` returns the response for the value of "key" in this data. The last 64 responses are
    cached.

    Raises:
        WorkbenchError: the row has values that cannot be shown.
    """
    with damage(opened.name):
        data = opened.data()
        text = as_json(data)  # raises for values that JSON cannot hold
    with _lock:
        _opened[data["key"]] = opened
        _opened.move_to_end(data["key"])
        while len(_opened) > CACHED:
            _opened.popitem(last=False)
    return text


def recall(key: str) -> Opened:
    """Return the open response that `show` cached under this key.

    Raises:
        WorkbenchError: the response is no longer cached.
    """
    with _lock:
        opened = _opened.get(key)
    if opened is None:
        raise WorkbenchError("this response is no longer open: open it again")
    return opened


def open_feedback(feedback: Feedback, group: Sequence[Feedback], name: str) -> Opened:
    """Open a response that is in no run.

    Rewards that the response lacks are computed with the default config of every method.

    Args:
        group: the responses to the same prompt, including this response.
        name: the title on the page.
    """
    configs = method_configs()
    rows = with_all_rewards([feedback, *group], configs)
    return Opened(rows[0], tuple(rows[1:]), name, configs)


def open_row(runs: Runs, name: str, row: str, method: str | None = None) -> Opened:
    """Open the stored response with the id `row` of the run `name`.

    The opened response has the rewards of all methods. Rewards that are not stored are computed.

    Args:
        method: the method whose rewards are shown first; None: the first method with a stored
            reward.

    Raises:
        WorkbenchError: there is no such run, row or method.
    """
    number, whole = runs.number(name, row), not runs.rows(name).missing
    feedback = runs.feedback(name, number)
    configs = configs_of(runs, name)
    with damage(f"row {number + 1} of run '{name}'"):
        rows = with_all_rewards([feedback, *runs.group(name, number)], configs)
    methods = [label for label in rows[0].rewards if not is_logged(label)]
    if method and method not in methods:
        raise WorkbenchError(f"no method '{method[:40]}': choose one of {', '.join(methods)}")
    first = method or next((label for label in feedback.rewards if not is_logged(label)), None)
    person, note = dict[int, str](), "" if whole else INCOMPLETE
    try:
        person = labels(runs, name, feedback)
    except WorkbenchError as error:
        note = note or f"The person's labels of this answer are not shown: {error}"
    return Opened(
        rows[0],
        tuple(rows[1:]),
        f"{name} · {row}",
        configs,
        first,
        name,
        note,
        person,
        stored_evidence(runs, name),
    )


def stored_evidence(runs: Runs, name: str) -> Lookup:
    """Return a function that finds the stored passage to which an evidence item refers.

    The function takes an item of a verdict's evidence. It returns the passage's (title, text), or
    None if the run has no such passage.
    """

    def lookup(item: JsonMapping) -> tuple[str, str] | None:
        passage = runs.passage(name, str(item.get("passage")))
        return (passage.title or passage.id, passage.text) if passage else None

    return lookup


def configs_of(runs: Runs, name: str) -> JsonObject:
    """Return method -> config for every method of `METHODS`.

    This is the config stored with the run or, if there is none, the default config.
    """
    with damage(f"run '{name}': its settings"):
        stored = runs.settings(name)
        return {
            method: _restored(config, stored.get(method, {}))
            for method, config in method_configs().items()
        }


def _restored(config: Config, stored: JsonMapping) -> Config:
    """Return the config with the stored values; unknown fields (of other versions) are ignored.

    Raises:
        ValueError: a stored value has another type than the default.
    """
    restored = restore(config, stored)
    for (name, value, _), (_, default, _) in zip(settings(restored), settings(config), strict=True):
        if not _same_kind(value, default):
            raise ValueError(
                f"{name} is {value!r}, but its default is {default!r}: use the same type"
            )
    return restored


def _same_kind(value: object, default: object) -> bool:
    """Return whether a stored value has the same type as the default: number, flag or text.

    Two cases are not checked and return True: one of the values is None, or the default is a tuple.
    """
    if value is None or default is None or isinstance(default, tuple):
        return True
    if isinstance(default, bool) or not isinstance(default, int | float):
        return isinstance(value, type(default))
    return isinstance(value, int | float) and not isinstance(value, bool)


def with_all_rewards(rows: Sequence[Feedback], configs: JsonMapping) -> list[Feedback]:
    """Return the rows with the rewards of every method.

    Stored rewards are kept. Missing rewards are computed with `configs` (method -> config).
    """
    rewarded = []
    for row in rows:
        row = with_rewards(row, {k: v for k, v in configs.items() if k not in row.rewards})
        names = [name for name in dict.fromkeys((*METHODS, *row.rewards)) if name in row.rewards]
        rewarded.append(replace(row, rewards={name: row.rewards[name] for name in names}))
    return rewarded


def with_rewards(row: Feedback, configs: JsonMapping) -> Feedback:
    """Return a row with new rewards of the methods in `configs`, computed from its verdicts.

    If the row lacks results of a check that a method needs, the reward of this method has the value
    None and a `Failure`.

    Args:
        configs: method -> config.
    """
    row = rescore(row, reward_fns(configs))
    # also if the method can compute a value without the check
    for method, config in configs.items():
        needed = checks_needed({method: config})
        missing = [CHECKED.get(check, check) for check in needed if not _was_checked(row, check)]
        if missing and row.rewards[method].value is not None:
            checks = " and ".join(dict.fromkeys(missing))
            message = f"{title(method)} cannot score this answer: it was not checked for {checks}"
            failure = Failure("reward", "not_asked", message)
            row = replace(row, rewards={**row.rewards, method: Reward(None, error=failure)})
    return row


CHECKED = {
    "fact": "the truth of its claims",
    "single_pass": "the truth of its claims",
    "outcome": "its outcome",
    "checklist": "the facts of a checklist",
    "claim_checklist": "its claims, by the checklist",
    "reasoning": "its reasoning",
    "general": "its general quality",
}


def _was_checked(row: Feedback, check: str) -> bool:
    """Return whether the row has results, or a stored failure, of this check."""
    if check in ("fact", "single_pass"):  # these checks store sentences of every non-empty answer
        return bool(row.sentences or row.claims or not row.response.text.strip())
    if check in ("claim_checklist", "checklist"):
        target = "item:" if check == "checklist" else "claim:"
        checked = (v for v in row.verdicts if v.aspect == "checklist")
        unneeded = check == "claim_checklist" and not row.claims
        return unneeded or any(v.target.startswith(target) for v in checked)
    return any(check in (v.target, v.aspect) for v in row.verdicts)
