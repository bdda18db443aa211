"""Build the inspector's page from its tabs, choose its initial content, and serve it."""

import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.inspector.annotate import annotator
from workbench.inspector.guard import allowed, guard
from workbench.inspector.import_gradio import import_gradio
from workbench.inspector.inspect_tab import (
    SOURCES,
    inspect_tab,
    most_claims,
    open_example,
    open_number,
)
from workbench.inspector.live import PAGES, indexes, live_tab, policies
from workbench.inspector.opened import Opened, open_row, show
from workbench.inspector.parts import QUIET, component, gradio_arguments, head, message, theme
from workbench.inspector.runs import Runs, damage
from workbench.inspector.runs_tab import runs_tab
from workbench.inspector.same_prompt import same_prompt
from workbench.inspector.token_view import as_json
from workbench.inspector.what_if import labeller, what_if
from workbench.runs.store import ROLLOUTS, leads_out
from workbench.types import WorkbenchError
from workbench.util.failures import error_line

if TYPE_CHECKING:
    from gradio import Blocks, Request
    from gradio.routes import App
    from starlette import requests, responses

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Settings:
    """Settings of the inspector.

    Attributes:
        runs: folder of all runs.
        run: name of the run to open first; None: the worked example is opened.
        port: port on this machine; 0 for any free port.
        hosts: host names under which the page may be opened, in addition to 127.0.0.1 and
            localhost.
    """

    runs: Path = Path("runs")
    run: str | None = None
    port: int = 0
    hosts: tuple[str, ...] = ()


def settings(run: Path | None, runs: Path | None, port: int, hosts: Sequence[str] = ()) -> Settings:
    """Return the inspector's settings.

    Args:
        run: the run to open first: its folder, or its file of rows.
        runs: the runs folder; None: `runs/`, or the parent of `run` if the run is outside `runs/`.
        port, hosts: see `Settings`.

    Raises:
        WorkbenchError: the run has no rollouts or is outside the runs folder, or a value in `hosts`
            is not a host name.
    """
    names = allowed(hosts)
    root = runs or Path("runs")
    if run is None:
        return Settings(root, None, port, names)
    # a run is named by its folder, even if its file of rollouts is given
    folder = run.resolve().parent if run.name == ROLLOUTS else run.resolve()
    root = root.resolve()
    if not folder.is_relative_to(root) and runs is None:
        root = folder.parent
    if not folder.is_relative_to(root) or folder == root:
        raise WorkbenchError(
            f"'{run}' is not inside the runs folder '{root}': set --runs to a folder that contains"
            " the run"
        )
    name = folder.relative_to(root).as_posix()
    if not len(Runs(root).rows(name)):
        raise WorkbenchError(
            f"'{run}' has no rollouts yet: wait for its first step, or name another run"
        )
    return Settings(root, name, port, names)


def build(config: Settings) -> "Blocks":
    """Build the page with all tabs, without serving it."""
    import_gradio()
    import gradio as gr

    runs = Runs(config.runs)
    with gr.Blocks(title="Reward inspector", analytics_enabled=False, fill_width=True) as page:
        gr.HTML(
            '<div class="wb-title"><h1>Reward inspector</h1><p>The rewards of every claim and every'
            " token.</p></div>",
            js_on_load=None,
            apply_default_css=False,
        )
        with gr.Tabs(selected="inspect") as tabs:
            with gr.Tab("Inspect", id="inspect"):
                inspect = inspect_tab(runs)
            with gr.Tab("Compare", id="compare"):
                component("Compare", None, (same_prompt(runs),), elem_id="compare-view")
            with gr.Tab("What if", id="what-if"):
                component("WhatIf", None, (what_if, labeller(runs)), elem_id="what-if-view")
            with gr.Tab("Runs", id="runs"):
                view = runs_tab(runs, inspect, tabs)
            with gr.Tab("Annotate", id="annotate"):
                component("Annotate", None, (annotator(runs),), elem_id="annotate-view")
            with gr.Tab("Live", id="live"):
                policy, store = live_tab(runs, inspect, tabs)

        @gradio_arguments(request="Request")
        def start(request: "Request") -> list[object]:
            names = runs.names()
            opened, error = first_shown(runs, config, dict(request.query_params))
            selected = opened.run or (config.run if config.run in names else None)
            row = opened.feedback.response.id
            return [
                show(opened),
                message(error, opened.note),
                SOURCES[bool(opened.run)],
                gr.update(choices=names, value=selected or next(iter(names), None)),
                runs.number(opened.run, row) + 1 if opened.run else 1,
                as_json({"run": selected}),
                gr.update(choices=policies(runs)),
                gr.update(choices=indexes(runs), value=PAGES),
            ]

        page.load(start, None, [*inspect.outputs, view, policy, store], **QUIET)
    return page


def first_shown(
    runs: Runs, config: Settings, query: Mapping[str, str]
) -> tuple[Opened, WorkbenchError | None]:
    """Return (the response that a new page shows, an error to display or None).

    The response is the first of these that applies:

    * the row that the URL names, if `query` has "run" and "id";
    * the row with the most claims, if `query` or `config` names a run;
    * the worked example.

    If the row cannot be shown, the result is the worked example and the error.

    Args:
        query: the parameters of the page's URL.
    """
    method = query.get("method")
    try:
        if query.get("run") and query.get("id"):
            opened = open_row(runs, query["run"], query["id"], method)
        elif run := query.get("run") or config.run:
            opened = open_number(runs, run, most_claims(runs.rows(run)), method)
        else:
            return open_example(), None
        show(opened)  # raises for a row that cannot be shown
        return opened, None
    except WorkbenchError as error:
        reason = f"{str(error).rstrip('.')}. The worked example is shown instead."
        return open_example(), WorkbenchError(reason)


def launch(config: Settings, browser: bool = True) -> None:
    """Serve the page on this machine until the user interrupts the program. Print its address.

    Args:
        browser: whether to open the page in a browser.

    Raises:
        WorkbenchError: the port is taken.
    """
    page = build(config)
    try:
        app, address, _ = page.launch(
            server_name=HOST,
            server_port=config.port or None,
            quiet=True,
            prevent_thread_lock=True,
            share=False,
            ssr_mode=False,
            num_workers=0,
            mcp_server=False,
            enable_monitoring=False,
            footer_links=[],
            run_history=False,
            theme=theme(),
            head=head(),
            app_kwargs={"lifespan": partial(_guarded, config.hosts)},
        )
    except OSError as error:
        raise WorkbenchError(
            f"the inspector cannot start ({error_line(error)}): name another --port"
        ) from error
    app.add_route("/compare", partial(compare_runs, Runs(config.runs)))
    # gradio may continue after a failed start, and would then serve without the guard
    assert app.state.guarded is app.middleware_stack
    print(f"reward inspector: {address}", flush=True)
    if browser:
        webbrowser.open(address)
    page.block_thread()


def compare_runs(runs: Runs, request: "requests.Request") -> "responses.Response":
    """Answer a request of `/compare?run=NAME&run=NAME…` with the page of `workbench compare`.

    Its rows link to their rollouts. Without names, all evaluated runs are compared. Runs with links
    out of the runs folder are left out. If a run cannot be compared, the answer is the error.
    """
    from starlette.responses import HTMLResponse, PlainTextResponse

    # not when the page starts: the metrics take a moment to import
    from workbench.experiments.compare import compare, evaluated
    from workbench.experiments.compare_page import comparison_page

    names = request.query_params.getlist("run")
    try:
        with damage("a compared run"):
            paths = {
                str(path): name
                for name in names or runs.names()
                if runs.file(name) and not leads_out(path := runs.root / name, runs.root)
                if names or evaluated(path)
            }
            if not paths:
                raise WorkbenchError(
                    "no run to compare: choose evaluated runs without links out of the runs folder"
                )
            result = compare(*paths)
            for row in result["rows"]:  # the name of a row of files is a path on this machine
                row["name"] = paths.get(row["name"], row["name"])
            return HTMLResponse(comparison_page(result, paths))
    except WorkbenchError as error:
        return PlainTextResponse(str(error), 400)


@asynccontextmanager
async def _guarded(names: Sequence[str], app: "App") -> AsyncIterator[None]:
    """Apply `guard` to the app before the server listens; an ASGI lifespan."""
    app.state.guarded = app.middleware_stack = guard(app.middleware_stack, names)
    yield
