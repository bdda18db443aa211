"""The What-if tab: it computes rewards again with other settings and labels, without a judge."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from workbench.inspector.annotated import annotate, labels, relabelled
from workbench.inspector.controls import controls
from workbench.inspector.opened import recall, show, with_rewards
from workbench.inspector.parts import ServerFunction, server_function
from workbench.inspector.runs import Runs
from workbench.inspector.token_view.payload import group_advantages
from workbench.methods import method_configs
from workbench.types import Feedback, JsonMapping, JsonObject, WorkbenchError
from workbench.util.config import override
from workbench.util.failures import is_logged
from workbench.util.jsonl import encodable


def changed(configs: JsonMapping, settings: Mapping[str, JsonMapping]) -> JsonObject:
    """Return a copy of the configs with changed settings.

    Args:
        configs: method -> config.
        settings: method -> {field: new value}.

    Raises:
        WorkbenchError: there is no such method or field, or a value has the wrong type.
    """
    edited = dict(configs)
    for method, values in settings.items():
        if method not in edited:
            raise WorkbenchError(
                f"no method '{str(method)[:40]}': choose one of {', '.join(edited)}"
            )
        assignments = [f"{method}.{field}={_spelled(value)}" for field, value in values.items()]
        edited[method] = override(edited[method], method, assignments)
    return edited


def differences(method: str, config: Any) -> list[str]:
    """Return the values of `--set` that turn the method's default config into `config`.

    An example is ["rlfh.f_wrong=-3"].
    """
    default = method_configs((method,))[method]
    return [
        f"{method}.{item['name']}={_spelled(value)}"
        for item in controls(config)
        if (value := getattr(config, item["name"])) != getattr(default, item["name"])
    ]


def _spelled(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@server_function
def what_if(request: JsonObject) -> JsonObject:
    """Compute the rewards of an open response again, with changed settings and labels.

    Args:
        request: "key" of the response, "settings" (method -> {field: new value}) and "edits" (claim
            id -> {"label", "informativeness"}; a missing key keeps the judge's value).

    Returns:
        "view": the data of the response, from `Opened.data`.
        "group": the answers to the same prompt with their rewards, from `group_rows`.
        "controls": method -> descriptions of its input controls.
        "config": method -> its settings.
        "line": the changed settings as options, such as "--set rlfh.f_wrong=-3".
    """
    opened = recall(str(request["key"]))
    edits = request.get("edits") or {}
    configs = changed(opened.configs, request.get("settings") or {})
    row = with_rewards(relabelled(opened.feedback, edits), configs)
    group = tuple(
        row if member.response.id == row.response.id else with_rewards(member, configs)
        for member in opened.group
    )
    # the edited row is not cached: the next request starts from the stored row again
    view = replace(opened, feedback=row, group=group).data()
    for claim in view["claims"]:
        claim["edited"] = str(claim["id"]) in edits
    return {
        "view": view,
        "controls": {
            method: controls(config) for method, config in configs.items() if method in row.rewards
        },
        "group": group_rows(row, group),
        "line": " ".join(
            f"--set {argument}" for config in configs.items() for argument in differences(*config)
        ),
        "config": {
            method: {"method": method, **asdict(config)} for method, config in configs.items()
        },
    }


def group_rows(row: Feedback, group: tuple[Feedback, ...]) -> list[JsonObject]:
    """Return the data of each answer of a group: its text, rewards and mean advantages.

    "advantages" is method -> {estimator: mean over the answer's tokens}. "open" marks the answer in
    `row`, which is the open response.
    """
    by_method = {
        method: group_advantages(group, method) for method in row.rewards if not is_logged(method)
    }
    return [
        {
            "id": member.response.id,
            "text": encodable(member.response.text[:300]),
            "open": member.response.id == row.response.id,
            "values": {method: reward.value for method, reward in member.rewards.items()},
            "advantages": {
                method: {
                    name: sum(rows_BT[index]) / len(rows_BT[index])
                    for name, rows_BT in estimates.items()
                    if rows_BT[index]
                }
                for method, estimates in by_method.items()
            },
        }
        for index, member in enumerate(group)
    ]


def labeller(runs: Runs) -> ServerFunction:
    """Return the function that the page calls to store a person's labels and ratings of claims.

    * Request: "key" of the open response, and "edits": claim id -> {"label", "informativeness"},
      or {} to remove a stored label.
    * Result: "path" of the file with the labels, and "labels": claim id -> label. After an error,
      {"error": message}.
    """

    @server_function
    def label_claims(request: JsonObject) -> JsonObject:
        opened, edits = recall(str(request["key"])), request.get("edits")
        if not edits:
            raise WorkbenchError("no label was changed: change one first")
        path = annotate(runs, opened.run, opened.feedback, edits)
        stored = labels(runs, opened.run, opened.feedback)
        show(replace(opened, labels=stored))
        return {"path": path, "labels": {str(claim): label for claim, label in stored.items()}}

    return label_claims
