"""Runs: how trainings went, the rollouts of any step, and the same prompts before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.experiments.demo import answers
from workbench.inspector.curves import curve_data, run_list, stamp
from workbench.inspector.export import exported
from workbench.inspector.inspect_tab import InspectTab
from workbench.inspector.listing import query_of, rollouts
from workbench.inspector.opened import NOTHING, open_row, show
from workbench.inspector.parts import answered, component, message, told
from workbench.inspector.runs import Runs, damage
from workbench.inspector.token_view import as_json
from workbench.types import WorkbenchError


def runs_tab(runs: Runs, inspect: InspectTab, tabs: Any) -> Any:
    """Lay the tab out and wire it; returns the view, for the page to say which run is chosen
    first.
    """
    import gradio as gr

    view = component("Runs", None, server_functions(runs), elem_id="runs-view")

    @told(event="EventData")
    def opened(event: Any) -> tuple[Any, ...]:
        name, row, query = (event._data.get(key) for key in ("run", "id", "query"))
        try:
            found = open_row(runs, str(name), str(row))
            shown, note = show(found), message(note=found.note)
            number = runs.number(str(name), str(row)) + 1
            came = {"run": name, "id": row, "query": query}
            return shown, note, "Stored run", name, number, came, gr.update(selected="inspect")
        except WorkbenchError as error:
            return (
                NOTHING,
                message(error),
                gr.skip(),
                gr.skip(),
                gr.skip(),
                None,
                gr.update(selected="inspect"),
            )

    outputs = [*inspect.outputs, inspect.came, tabs]
    view.select(
        opened, None, outputs, show_progress="hidden", api_visibility="private", queue=False
    )
    return view


def server_functions(runs: Runs) -> tuple[Callable[[Any], dict[str, Any]], ...]:
    """What the page asks about runs; lists come as the text of JSON, which may hold what only
    that can say.
    """

    @answered
    def look(request: dict[str, Any]) -> dict[str, Any]:
        names = [str(name) for name in request["names"]]
        if (now := stamp(runs, names)) == request.get("stamp"):
            return {"same": True}
        return {"stamp": now, "runs": as_json(run_list(runs)), "curves": curve_data(runs, names)}

    @answered
    def list_rollouts(request: dict[str, Any]) -> dict[str, Any]:
        name, asked_for = str(request["run"]), dict(request["query"])
        if asked_for.get("step") == "last":
            asked_for["step"] = max(runs.rows(name).steps, default=None)
        return {"text": rollouts(runs, name, query_of(asked_for))}

    @answered
    def before_and_after(request: dict[str, Any]) -> dict[str, Any]:
        return {"text": before_after(runs, str(request["run"]))}

    @answered
    def ask_policies(request: dict[str, Any]) -> dict[str, Any]:
        return {"text": asked(runs, str(request["run"]))}

    @answered
    def export_rollouts(request: dict[str, Any]) -> dict[str, Any]:
        return exported(runs, str(request["run"]), query_of(request["query"]), str(request["form"]))

    return look, list_rollouts, before_and_after, ask_policies, export_rollouts


def before_after(runs: Runs, name: str | None) -> str:
    """The evaluation before training and after it, from the run's summary."""
    try:
        with damage(f"run '{name}': summary.json"):
            summary = runs.described(name, "summary.json") if name else {}
            before, after = (summary.get(when) or {} for when in ("before", "after"))
            rows = [
                [
                    f"{rate.capitalize()}, {mode}",
                    _cell(before, mode, rate),
                    _cell(after, mode, rate),
                ]
                for mode in ("greedy", "sampled")
                for rate in ("accuracy", "abstention", "hallucination", "truthfulness")
                if _cell(before, mode, rate) or _cell(after, mode, rate)
            ]
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    if not rows:
        return as_json({"note": "This run has no evaluation before and after training."})
    count = (
        f"{before.get('n', after.get('n'))} questions of split"
        f" {before.get('split', after.get('split'))}, 95 % intervals"
    )
    return as_json({"note": count, "table": {"head": ["", "Before", "After"], "rows": rows}})


def _cell(report: Mapping[str, Any], mode: str, rate: str) -> str:
    cell = (report.get(mode) or {}).get(rate) or {}
    if not isinstance(cell, Mapping) or cell.get("value") is None:
        return ""
    low, high = cell.get("low"), cell.get("high")
    text = f"{cell['value']:.3f}" + (
        f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else ""
    )
    return text.replace("-", "\N{MINUS SIGN}")


def asked(runs: Runs, name: str | None) -> str:
    """The answers of the starting policy and the trained one to fixed prompts; what fails is
    shown, never raised.
    """
    try:
        if not name:
            raise WorkbenchError("choose a run first")
        if runs.described(name, "config.json").get("bench") != "tiny":
            raise WorkbenchError(
                "the fixed prompts are the closed world's: they are asked of runs on the tiny bench"
            )
        if not (folder := runs.policy(name)):
            raise WorkbenchError(
                "this run holds no trained policy of its own: choose a finished one"
            )

        rows = answers(folder)
    # a missing base model, memory: whatever loading a policy can run into
    except Exception as error:
        return as_json(
            {
                "error": (
                    f"{error}"
                    if isinstance(error, WorkbenchError)
                    else f"{type(error).__name__}: {error}"
                )
            }
        )
    head = ["Tier", "Question", "Truth", "Before", "After"]
    return as_json(
        {"table": {"head": head, "rows": [[row[key.lower()] for key in head] for row in rows]}}
    )
