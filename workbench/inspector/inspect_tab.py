"""Inspect and Compare: choose a response, see what each claim earned and which tokens earned it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from workbench.inspector import samples
from workbench.inspector.listing import neighbour, query_of
from workbench.inspector.opened import NOTHING, Opened, open_feedback, open_row, recall, show
from workbench.inspector.parts import answered, component, message
from workbench.inspector.runs import Runs
from workbench.inspector.token_view.page import page
from workbench.inspector.what_if import labeller
from workbench.runs.rows import Rows
from workbench.types import WorkbenchError

SOURCES = ("Samples", "Stored run", "Paste")
JUDGES = {
    "Local verifier, against the sources": "local",
    "Closed world, without sources": "world",
    "No judge: only find the claims": "none",
}
LOCAL = next(iter(JUDGES))
ABOUT_JUDGES = (
    "The local verifier, a small entailment model on this machine, reads every claim against the"
    " sources. The closed world knows made-up facts only."
)
TO_FILL = (
    "Nothing is scored yet. Fill in the question, the answer and the sources that the local"
    " verifier shall read it against, then press Score; or look at the worked example."
)
TO_SCORE = "Press Score to see what the answer in the form earns."


@dataclass(frozen=True)
class InspectTab:
    """The components that other tabs write to."""

    view: Any
    note: Any
    source: Any
    run: Any
    row: Any
    sample: Any
    came: Any  # the list that the open row was chosen from: {"run", "query"}, or None

    @property
    def outputs(self) -> list[Any]:
        return [self.view, self.note, self.source, self.run, self.row]


def inspect_tab(runs: Runs) -> InspectTab:
    """Lay the tab out inside the open `gr.Tab` and wire its controls."""
    import gradio as gr

    with gr.Row(elem_classes="wb-source", equal_height=True):
        source = gr.Radio(SOURCES, value=SOURCES[0], label="Source", scale=0, min_width=340)
        with gr.Row(visible=True) as sampled:
            sample = gr.Dropdown(
                list(samples.NAMES), value=samples.WORKED, label="Sample", min_width=240, scale=4
            )
            # of the worked example there is one
            another = gr.Button("Draw another", min_width=130, scale=0, visible=False)
        with gr.Row(visible=False) as stored:
            run = gr.Dropdown([], label="Run", min_width=200, scale=3, allow_custom_value=False)
            row = gr.Number(label="Row", value=1, minimum=1, precision=0, min_width=90, scale=1)
            before = gr.Button("Previous", min_width=80, scale=0, elem_id="wb-row-before")
            after = gr.Button("Next", min_width=70, scale=0, elem_id="wb-row-after")
    with gr.Column(visible=False, elem_classes="wb-paste") as paste:
        with gr.Row():
            question = gr.Textbox(label="Question", lines=1, max_lines=4, min_width=240)
            gold = gr.Textbox(
                label="Gold answers, one on each line (optional)",
                lines=1,
                max_lines=4,
                min_width=200,
            )
        with gr.Row():
            answer = gr.Textbox(label="Answer", lines=5, max_lines=16, min_width=240)
            sources = gr.Textbox(
                label="Sources that the local verifier reads, an empty line between them",
                lines=5,
                max_lines=16,
                min_width=240,
            )
        judge = gr.Radio(list(JUDGES), value=LOCAL, label="Judge", info=ABOUT_JUDGES, min_width=240)
        with gr.Row():
            score = gr.Button("Score", variant="primary", scale=0, min_width=110)
            example = gr.Button("Show the worked example", scale=0, min_width=210)
            clear = gr.Button("Clear the form", scale=0, min_width=130)
    note = component("Note")
    view = component("Inspect", None, (export_page, labeller(runs)), elem_id="inspect-view")
    turn, came = gr.State(0), gr.State(None)

    outputs = [view, note]
    quiet = {"show_progress": "hidden", "api_visibility": "private", "queue": False}
    choose = lambda name: [gr.update(visible=name == option) for option in SOURCES]  # noqa: E731
    source.change(choose, source, [sampled, stored, paste], **quiet)
    source.input(first_of_source(runs), [source, sample, run, row, answer], outputs, **quiet)
    draw = lambda name: (  # noqa: E731
        *shown_or_error(lambda: open_sample(name, 0)),
        gr.update(visible=name != samples.WORKED),
    )
    sample.input(draw, sample, [*outputs, another], **quiet)
    another.click(
        lambda name, seed: (*shown_or_error(lambda: open_sample(name, seed + 1)), seed + 1),
        [sample, turn],
        [*outputs, turn],
        **quiet,
    )
    run.input(
        lambda name: (1, *shown_or_error(lambda: open_number(runs, name, 1))),
        run,
        [row, *outputs],
        **quiet,
    )
    gr.on(
        [row.submit, row.input],
        lambda name, number: shown_or_error(lambda: open_number(runs, name, number)),
        [run, row],
        outputs,
        **quiet,
    )
    for button, step in ((before, -1), (after, 1)):
        move = lambda name, number, chosen, step=step: moved(runs, name, number, step, chosen)  # noqa: E731
        button.click(move, [run, row, came], [row, *outputs], **quiet)
    paste_in = lambda *fields: shown_or_error(lambda: open_pasted(*fields))  # noqa: E731
    form, busy = (
        [question, answer, sources, gold, judge],
        {"api_visibility": "private", "show_progress": "minimal"},
    )
    score.click(paste_in, form, outputs, **busy)
    example.click(lambda: (*samples.EXAMPLE, LOCAL), None, form, **quiet).then(
        paste_in, form, outputs, **busy
    )
    clear.click(
        lambda: ("", "", "", "", NOTHING, message(note=TO_FILL)),
        None,
        [*form[:-1], *outputs],
        **quiet,
    )
    return InspectTab(view, note, source, run, row, sample, came)


def shown_or_error(opened: Callable[[], Opened]) -> tuple[Any, str]:
    """The values of the view and of the note; after an error nothing is open."""
    try:
        found = opened()
        return show(found), message(note=found.note)
    except WorkbenchError as error:
        return NOTHING, message(error)


def open_sample(name: str, seed: int = 0) -> Opened:
    rows = samples.sample(name, seed)
    return open_feedback(rows[0], rows, name)


def open_number(
    runs: Runs, name: str | None, number: float | None, method: str | None = None
) -> Opened:
    """Row `number` of a run, counted from 1."""
    if not name:
        raise WorkbenchError(
            "there is no run in the runs folder yet: train one, or start the inspector with"
            " --run DIR"
        )
    return open_row(runs, name, runs.row(name, int(number or 1) - 1)["id"], method)


def moved(
    runs: Runs, name: str | None, number: float | None, step: int, came: Any = None
) -> tuple[Any, ...]:
    """The row's number, the view and the note `step` rows on: in the order of the list that the
    row was opened from, if it was, else in that of the file."""
    import gradio as gr

    place = int(number or 1) + step
    try:
        count = runs.rows(name).total if name else 0
        if (
            name
            and isinstance(came, dict)
            and came.get("run") == name
            and 1 <= place - step <= count
        ):
            query = query_of(came.get("query") or {})
            found = neighbour(runs, name, query, place - step - 1, step)
            if found is None:
                return (
                    gr.skip(),
                    gr.skip(),
                    message(note="This is the end of the list that the answer was opened from."),
                )
            to, at, listed = found
            view, note = shown_or_error(lambda: open_number(runs, name, to + 1))
            told = message(
                note=f"{at:,} of {listed:,} in the list that the answer was opened from."
            )
            return to + 1, view, note if view == NOTHING else told
    except WorkbenchError as error:
        return place, NOTHING, message(error)
    return (
        (place, *shown_or_error(lambda: open_number(runs, name, place)))
        if 1 <= place <= count
        else (gr.skip(),) * 3
    )


def first_of_source(runs: Runs) -> Callable[..., tuple[Any, str]]:
    def first(
        source: str, sample: str, run: str | None, row: float, answer: str
    ) -> tuple[Any, str]:
        if source == SOURCES[2]:
            return NOTHING, message(note=TO_SCORE if (answer or "").strip() else TO_FILL)
        opened = (
            (lambda: open_sample(sample))
            if source == SOURCES[0]
            else (lambda: open_number(runs, run, row))
        )
        return shown_or_error(opened)

    return first


def open_pasted(question: str, answer: str, sources: str, gold: str, judge: str) -> Opened:
    feedback = samples.pasted(
        question=question or "",
        answer=answer or "",
        sources=sources or "",
        gold=gold or "",
        judge=JUDGES[judge],
    )
    own = (question, answer, sources, gold) != samples.EXAMPLE
    name = (
        f"{'Pasted answer' if own else samples.WORKED}, judged by: {judge[0].lower() + judge[1:]}"
    )
    return open_feedback(feedback, (feedback,), name)


def most_to_see(rows: Rows) -> int:
    """The number of the row that a run opens with, counted from 1: the last with most claims."""
    return int(rows.table["claims"][::-1].idxmax()) + 1 if len(rows) else 1


@answered
def export_page(asked: dict[str, Any]) -> dict[str, Any]:
    """The open response as a self-contained page; called by the page."""
    opened = recall(str(asked["key"]))
    method = asked.get("method")
    return {
        "html": page(
            replace(opened, method=method if method in opened.feedback.rewards else None).data()
        )
    }
