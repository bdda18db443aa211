"""Compute the metrics of each step of a run, from metrics.jsonl or from its responses.

An imported log of TRL or verl has numbers such as "trl:reward" instead of a method's rewards. The
number "reward" or, without it, "score" counts as the reward. If the log has neither, the sum of all
its rewards counts *(ours)*.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.runs.rows import NO_STEP, Rows
from workbench.types import OUTCOMES, JsonMapping, JsonObject
from workbench.util.failures import is_logged
from workbench.util.jsonl import finite

if TYPE_CHECKING:
    from pandas import Series

TOTALS = ("reward", "score")  # names of the whole reward in logs, in order of preference
RATES = ("accuracy", "abstention", "hallucination")  # the shares of `OUTCOMES`
_MEASURE = re.compile(
    r"(^|_)(len|length|lengths|tokens|chars|words|time|seconds|step|index|id)($|_)"
)  # names of numbers that measure an answer and are not rewards


def reward_columns(names: Iterable[str]) -> list[str]:
    """Select the numbers in the log of TRL or verl whose sum is the total reward.

    * ["trl:reward"] if the log has a number "reward";
    * otherwise ["trl:score"] if it has a number "score";
    * otherwise all numbers except measures such as lengths, times and token counts.

    Args:
        names: names of stored rewards, such as "trl:reward". Names without ":", such as "truthrl",
            are ignored: they are rewards of the workbench's methods, not numbers of the log.
    """
    # equal weights are TRL's default; the logs do not contain the weights
    logged = {name: name.partition(":")[2] for name in names if is_logged(name)}
    totals = [name for total in TOTALS for name, column in logged.items() if column == total]
    return totals[:1] or [name for name, column in logged.items() if not _MEASURE.search(column)]


def reward_of(rows: Rows, method: str) -> "Series":
    """Return the reward of each row's response; NaN for a row that was not scored.

    Args:
        rows: the table of stored responses.
        method: the method's name. "": sum the logged rewards that `reward_columns` selects.
    """
    names = [method] if method else reward_columns(rows.methods)
    columns = [rows.reward(name) for name in names]
    return sum(columns[1:], columns[0]) if columns else rows.reward("")


def parts_of(rows: Rows, method: str) -> "dict[str, Series]":
    """Return the terms of a method's reward: "part:NAME" -> one value per row.

    An example is "part:outcome". If `method` is "", return the numbers that TRL or verl logged
    instead: "logged:NAME" -> one value per row.
    """
    if method:
        own = [part for name, part in rows.rewards if part and name == method]
        return {f"part:{part}": rows.reward(method, part) for part in own}
    logged = [name for name, part in rows.rewards if is_logged(name) and not part]
    return {f"logged:{name.partition(':')[2]}": rows.reward(name) for name in logged}


def step_means(rows: Rows, method: str) -> list[JsonObject]:
    """Compute metrics of each training step from its stored responses; one object per step.

    The keys are `step` and these:

    * `reward`, `length` (in tokens), `truncated` and the terms of the reward, such as
      "part:outcome" (see `parts_of`): means over the step's responses. `truncated` is None if no
      response of the run is marked as truncated.
    * `accuracy`, `abstention`, `hallucination`: shares of the responses whose answer was judged.
    * `reward_std`: the standard deviation within each group, averaged over groups of two or more.
    * `failed`: the number of responses without a reward.

    Args:
        method: name of the method whose reward is used; "": the reward that TRL or verl logged.
    """
    if ("steps", method) in rows.derived:
        return list(rows.derived["steps", method])
    from pandas import DataFrame

    table, reward = rows.table, reward_of(rows, method)
    # rows without an outcome are left out of the rates
    judged = table["outcome"] != ""
    columns: JsonObject = {
        rate: (table["outcome"] == label).astype("float64").where(judged)
        for rate, label in zip(RATES, OUTCOMES, strict=True)
    }
    columns |= {"reward": reward, "length": table["length"]}
    if table["cut"].any():  # otherwise `finish` may not have been recorded
        columns["truncated"] = table["cut"]
    used = table["step"] != NO_STEP
    frame = DataFrame({**columns, **parts_of(rows, method), "step": table["step"]})[used]
    means = frame.groupby("step").mean()
    means["failed"] = reward.isna()[used].groupby(frame["step"]).sum()
    grouped = frame["reward"][table["group"] != ""]
    spreads = grouped.groupby([frame["step"], table["group"]]).std()
    means["reward_std"] = spreads.groupby("step").mean()
    results = [
        {"truncated": None, **{name: finite(value) for name, value in row.items()}, "step": step}
        for step, row in zip(means.index.tolist(), means.to_dict("records"), strict=True)
    ]
    rows.derived["steps", method] = results
    return list(results)


def by_step(metrics: Sequence[JsonMapping], rows: Rows, method: str) -> list[JsonObject]:
    """Return the metrics of each training step, as one object per step in order.

    A number in `metrics` has priority. A number that `metrics` lacks is computed from the step's
    responses by `step_means`. The key "reward/NAME" of `metrics` is renamed "part:NAME".

    Args:
        metrics: the rows of metrics.jsonl.
        rows: the table of stored responses.
        method: name of the method whose reward is used; "": the reward that TRL or verl logged.
    """
    steps = {row["step"]: dict(row) for row in step_means(rows, method)}
    for row in metrics:
        if type(step := row.get("step")) is int:
            steps.setdefault(step, {}).update(
                {
                    re.sub("^reward/", "part:", name): value
                    for name, value in row.items()
                    if finite(value) is not None
                }
            )
    return [{**row, "step": step} for step, row in sorted(steps.items())]
