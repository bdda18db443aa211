"""The Runs tab: training curves, evaluations, and the rollouts of any step."""

from typing import TYPE_CHECKING

from workbench.inspector.curves import MAX_RUNS, curve_data, run_list, stamp
from workbench.inspector.evaluations import before_after
from workbench.inspector.inspect_tab import SOURCES, InspectTab
from workbench.inspector.listing import query_of, rollouts
from workbench.inspector.opened import NOTHING, open_row, show
from workbench.inspector.parts import (
    QUIET,
    ServerFunction,
    component,
    gradio_arguments,
    message,
    server_function,
)
from workbench.inspector.runs import Runs
from workbench.inspector.token_view import as_json
from workbench.types import JsonObject, WorkbenchError

if TYPE_CHECKING:
    from gradio import EventData, Tabs
    from gradio.components import Component


def runs_tab(runs: Runs, inspect: InspectTab, tabs: "Tabs") -> "Component":
    """Build the Runs tab and connect its events. Return its component.

    To select a run on the page, set the component's value to {"run": name} as JSON text.

    Args:
        inspect: the tab in which a clicked rollout is opened.
        tabs: the page's tabs, to select that tab.
    """
    import gradio as gr

    view = component("Runs", None, server_functions(runs), elem_id="runs-view")

    @gradio_arguments(event="EventData")
    def select(event: "EventData") -> tuple[object, ...]:
        name, row, query = (event._data.get(key) for key in ("run", "id", "query"))
        try:
            opened = open_row(runs, str(name), str(row))
            number = runs.number(str(name), str(row)) + 1
            origin = {"run": name, "id": row, "query": query}
            values = show(opened), message(note=opened.note), SOURCES[1], name, number, origin
        except WorkbenchError as error:
            values = NOTHING, message(error), *[gr.skip()] * 3, None
        return *values, gr.update(selected="inspect")

    view.select(select, None, [*inspect.outputs, inspect.origin, tabs], **QUIET)
    return view


def server_functions(runs: Runs) -> tuple[ServerFunction, ...]:
    """Return the functions that the page's script calls for the Runs tab."""

    # they return rows as JSON text, because gradio's own encoding fails for some texts
    @server_function
    def look(request: JsonObject) -> JsonObject:
        names = [str(name) for name in request["names"]]
        # the page asks every few seconds, and curves of large runs are slow to send
        if (now := stamp(runs, names)) == request.get("stamp"):
            return {"same": True}
        return {"stamp": now, "runs": as_json(run_list(runs)), "curves": curve_data(runs, names)}

    @server_function
    def list_rollouts(request: JsonObject) -> JsonObject:
        name, query = str(request["run"]), dict(request["query"])
        if query.get("step") == "last":
            query["step"] = max(runs.rows(name).steps, default=None)
        return {"text": rollouts(runs, name, query_of(query))}

    @server_function
    def before_and_after(request: JsonObject) -> JsonObject:
        names = [str(name) for name in request["names"]][:MAX_RUNS]
        return {"text": before_after(runs, names)}

    return look, list_rollouts, before_and_after
