"""The Inspect tab: select a response, and see the rewards of its claims and tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.inspector.examples import worked_example
from workbench.inspector.listing import neighbour, query_of
from workbench.inspector.opened import NOTHING, Opened, open_feedback, open_row, recall, show
from workbench.inspector.parts import BUSY, QUIET, component, message, server_function
from workbench.inspector.paste import EXAMPLE, pasted
from workbench.inspector.runs import Runs
from workbench.inspector.token_view.page import page
from workbench.inspector.what_if import labeller
from workbench.runs.rows import Rows
from workbench.types import JsonMapping, JsonObject, WorkbenchError

if TYPE_CHECKING:
    from gradio.components import Component

SOURCES = ("Worked example", "Stored run", "Paste")
JUDGES = {
    "Local verifier, against the sources": "local",
    "Closed world, without sources": "world",
    "No judge: only find the claims": "none",
}
LOCAL = next(iter(JUDGES))
ABOUT_JUDGES = (
    "The local verifier, a small entailment model on this machine, checks every claim against the"
    " sources. The closed world covers invented facts only."
)
TO_FILL = (
    "Nothing is scored yet. Fill in the question, the answer and the sources for the local"
    " verifier, then press Score; or show the worked example."
)
TO_SCORE = "Press Score to see the rewards of the answer in the form."


@dataclass(frozen=True)
class InspectTab:
    """Gradio components of the Inspect tab. Another tab sets their values to show a response."""

    view: Component
    note: Component
    source: Component
    run: Component
    row: Component
    origin: Component  # {"run", "query"} of the list that the open row came from, or None

    @property
    def outputs(self) -> list[Component]:
        """Return the components that change when a response is opened."""
        return [self.view, self.note, self.source, self.run, self.row]


def inspect_tab(runs: Runs) -> InspectTab:
    """Build the Inspect tab inside the current `gr.Tab`, and connect its events."""
    import gradio as gr

    with gr.Row(elem_classes="wb-source", equal_height=True):
        source = gr.Radio(SOURCES, value=SOURCES[0], label="Source", scale=0, min_width=420)
        with gr.Row(visible=False) as stored:
            run = gr.Dropdown([], label="Run", min_width=200, scale=3)
            row = gr.Number(label="Row", value=1, minimum=1, precision=0, min_width=90, scale=1)
            before = gr.Button("Previous", min_width=80, scale=0, elem_id="wb-row-before")
            after = gr.Button("Next", min_width=70, scale=0, elem_id="wb-row-after")
    with gr.Column(visible=False, elem_classes="wb-paste") as paste:
        with gr.Row():
            line = partial(gr.Textbox, lines=1, max_lines=4)
            question = line(label="Question", min_width=240)
            gold = line(label="Gold answers, one per line (optional)", min_width=200)
        with gr.Row():
            text = partial(gr.Textbox, lines=5, max_lines=16, min_width=240)
            answer = text(label="Answer")
            sources = text(label="Sources for the local verifier, separated by empty lines")
        judge = gr.Radio(list(JUDGES), value=LOCAL, label="Judge", info=ABOUT_JUDGES, min_width=240)
        with gr.Row():
            score = gr.Button("Score", variant="primary", scale=0, min_width=110)
            example = gr.Button("Show the worked example", scale=0, min_width=210)
            clear = gr.Button("Clear the form", scale=0, min_width=130)
    note = component("Note")
    view = component("Inspect", None, (export_page, labeller(runs)), elem_id="inspect-view")
    origin = gr.State(None)

    outputs = [view, note]
    source.change(
        lambda name: [gr.update(visible=name == option) for option in SOURCES[1:]],
        source,
        [stored, paste],
        **QUIET,
    )

    def open_first(source: str, run: str | None, row: float, answer: str) -> tuple[str, str]:
        if source == SOURCES[0]:
            return shown_or_error(open_example)
        if source == SOURCES[1]:
            return shown_or_error(open_number, runs, run, row)
        return NOTHING, message(note=TO_SCORE if (answer or "").strip() else TO_FILL)

    # `input` reacts to the user only; `change` also to values that other tabs set
    source.input(open_first, [source, run, row, answer], outputs, **QUIET)

    open_stored = partial(shown_or_error, open_number, runs)
    run.input(lambda name: (1, *open_stored(name, 1)), run, [row, *outputs], **QUIET)
    gr.on([row.submit, row.input], open_stored, [run, row], outputs, **QUIET)
    for button, step in ((before, -1), (after, 1)):
        button.click(partial(step_row, runs, step), [run, row, origin], [row, *outputs], **QUIET)
    form = [question, answer, sources, gold, judge]
    score_form = partial(shown_or_error, open_pasted)
    score.click(score_form, form, outputs, **BUSY)
    example.click(lambda: (*EXAMPLE, LOCAL), None, form, **QUIET).then(
        score_form, form, outputs, **BUSY
    )
    clear.click(
        lambda: ("", "", "", "", NOTHING, message(note=TO_FILL)),
        None,
        [*form[:-1], *outputs],
        **QUIET,
    )
    return InspectTab(view, note, source, run, row, origin)


def shown_or_error(open_response: Callable[..., Opened], *arguments: object) -> tuple[str, str]:
    """Call `open_response(*arguments)`; return (response, note), two JSON texts for the page.

    If the call raises a WorkbenchError, the response is "null" and the note shows the error.
    """
    try:
        opened = open_response(*arguments)
        return show(opened), message(note=opened.note)
    except WorkbenchError as error:
        return NOTHING, message(error)


def open_example() -> Opened:
    """Open the worked example, an answer with claims and verdicts that is always available."""
    return open_feedback(worked_example(), (worked_example(),), SOURCES[0])


def open_number(
    runs: Runs, name: str | None, number: float | None, method: str | None = None
) -> Opened:
    """Open the stored response in one row of the run `name`.

    Args:
        number: the row's number, from 1; None: 1.
        method: the method whose rewards are shown first; None: the first method with a stored
            reward.

    Raises:
        WorkbenchError: `name` is None, or there is no such run, row or method.
    """
    if not name:
        raise WorkbenchError(
            "the runs folder has no run yet: train one, or start the inspector with --run DIR"
        )
    return open_row(runs, name, runs.row(name, int(number or 1) - 1)["id"], method)


def step_row(
    runs: Runs, step: int, name: str | None, number: float | None, origin: JsonMapping | None = None
) -> tuple[Any, ...]:
    """Open the stored response that is `step` rows after row `number` (from 1) of run `name`.

    Args:
        step: 1 for the next row, -1 for the previous row.
        origin: the list of rollouts in which the open response was selected, as {"run": name,
            "query": fields of a `Query`}. If the list is of this run, its next row is opened;
            otherwise, or if `origin` is None, the next row of the run's file.

    Returns:
        (row number, response, note), the last two as JSON text. If there is no such row, the row
        number and the response are `gr.skip()`: the page keeps the open response.
    """
    import gradio as gr

    start = int(number or 1)
    place = start + step
    try:
        count = runs.rows(name).total if name else 0
        if name and isinstance(origin, dict) and origin.get("run") == name and 1 <= start <= count:
            query = query_of(origin.get("query") or {})
            next_row = neighbour(runs, name, query, start - 1, step)
            if next_row is None:
                end = "This is the end of the list that the answer was opened from."
                return gr.skip(), gr.skip(), message(note=end)
            row, at, length = next_row
            view, note = shown_or_error(open_number, runs, name, row + 1)
            position = f"{at:,} of {length:,} in the list that the answer was opened from."
            return row + 1, view, note if view == NOTHING else message(note=position)
    except WorkbenchError as error:
        return place, NOTHING, message(error)
    if not 1 <= place <= count:
        return gr.skip(), gr.skip(), gr.skip()
    return place, *shown_or_error(open_number, runs, name, place)


def open_pasted(question: str, answer: str, sources: str, gold: str, judge: str) -> Opened:
    """Check the answer in the form with the selected judge, compute its rewards and open it.

    Args:
        sources: passages for the local verifier, separated by empty lines.
        gold: gold answers, one per line.
        judge: a key of `JUDGES`, such as "Closed world, without sources".
    """
    fields = (question or "", answer or "", sources or "", gold or "")
    feedback = pasted(*fields, judge=JUDGES[judge])
    title = SOURCES[0] if fields == EXAMPLE else "Pasted answer"
    name = f"{title}, judged by: {judge[0].lower() + judge[1:]}"
    return open_feedback(feedback, (feedback,), name)


def most_claims(rows: Rows) -> int:
    """Return the number (from 1) of the row with the most claims.

    If several rows have the most claims, return the last of them. Return 1 if there are no rows.
    """
    return int(rows.table["claims"][::-1].idxmax()) + 1 if len(rows) else 1


@server_function
def export_page(request: JsonObject) -> JsonObject:
    """Return {"html": text of a self-contained HTML page that shows an open response}.

    Args:
        request: "key" of the response, and "method", the method whose rewards are shown first.
    """
    opened = replace(recall(str(request["key"])), method=request.get("method"))
    return {"html": page(opened.data())}  # an unknown method selects the first one
