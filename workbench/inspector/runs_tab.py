"""Runs: how a training went, the rollouts of any step, and the same prompts before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.demo import answers
from workbench.inspector.inspect_tab import InspectTab
from workbench.inspector.opened import NOTHING, open_row, show
from workbench.inspector.parts import component, message, told
from workbench.inspector.rollouts import ORDERS, order_choices, own_method, rollouts
from workbench.inspector.runs import Runs, damage
from workbench.inspector.series import step_rows
from workbench.store import ROLLOUTS
from workbench.token_view import as_json
from workbench.types import WorkbenchError

NO_ROLLOUTS = "This run has no rollouts yet: choose another, or come back after its first step."
NO_OTHER = "no other run"

# What is drawn over the steps: column of metrics.jsonl or of the record, title, whether it is a share.
SERIES = (
    ("reward", "Reward", False), ("reward_std", "Spread of the reward in a group", False),
    ("accuracy", "Accuracy", True), ("abstention", "Abstention", True),
    ("hallucination", "Hallucination", True), ("kl", "KL to the reference", False), ("entropy", "Entropy", False),
    ("length", "Length, tokens", False), ("truncated", "Cut off", True), ("unplaced", "Claims not placed", True),
    ("failed", "Rows not scored", True),
)  # fmt: skip

PARTS = {"part": "Reward,", "logged": "Logged,"}  # what the reward is made of, by the beginning of its column


def runs_tab(runs: Runs, inspect: InspectTab, tabs: Any, tab: Any) -> tuple[Any, Any]:
    """Lay the tab out and wire it; returns the two boxes that choose runs, for the page to fill."""
    import gradio as gr

    with gr.Row(elem_classes="wb-source"):
        run = gr.Dropdown([], label="Run", min_width=220)
        other = gr.Dropdown([(NO_OTHER, "")], value="", label="Compare with", min_width=220)
    curves = component("Curves", {"note": "Choose a run."})
    with gr.Row(elem_classes="wb-source"):
        step = gr.Slider(0, 1, value=0, step=1, label="Step", min_width=200, scale=1)
        order = gr.Radio(order_choices(""), value=ORDERS[0], label="Sort the rollouts by", min_width=240, scale=2)
    listed = component("List", {})
    with gr.Accordion("Before and after", open=False):
        table = component("Note", {})
        ask = gr.Button("Ask the fixed prompts before and after", scale=0)
        answer_note = component(
            "Note", {"note": "Loads the starting policy and the trained one, and asks both the same questions, greedily."}
        )

    quiet = {"show_progress": "hidden", "api_visibility": "private", "queue": False}

    def chosen(name: str | None, second: str | None, by: str) -> tuple[Any, ...]:
        first, last = span(runs, name)  # a slider over one step or none is not shown, and its range may not be empty
        return (
            gr.update(minimum=min(first, last - 1), maximum=last, value=last, visible=last > first),
            orders(name, by),
            curve_data(runs, name, second, last),
            rollouts(runs, name, last, by),
            before_after(runs, name),
        )

    def orders(name: str | None, by: str) -> Any:
        try:
            method, rows = own_method(runs, name), bool(name and runs.index(name).entries)
        except WorkbenchError:  # told where the rollouts would be
            method, rows = "", False
        return gr.update(choices=order_choices(method), value=by, visible=rows)

    def compared(name: str | None, second: str | None, at: float) -> str:
        return curve_data(runs, name, second, int(at))

    other.input(compared, [run, other, step], curves, **quiet)
    gr.on([tab.select, run.input], chosen, [run, other, order], [step, order, curves, listed, table], **quiet)
    stepped = lambda name, second, at, by: (curve_data(runs, name, second, int(at)), rollouts(runs, name, int(at), by))  # noqa: E731
    gr.on([step.input, order.input], stepped, [run, other, step, order], [curves, listed], trigger_mode="always_last", **quiet)

    @told(event="EventData")
    def at_step(name: str | None, second: str | None, by: str, event: Any) -> tuple[Any, ...]:
        at = int(event._data["step"])
        return at, curve_data(runs, name, second, at), rollouts(runs, name, at, by)

    @told(event="EventData")
    def opened(name: str, event: Any) -> tuple[Any, ...]:
        row = str(event._data["id"])
        try:
            view = show(open_row(runs, name, row))
            return view, message(), "Stored run", name, runs.entry(name, row).number + 1, gr.update(selected="inspect")
        except WorkbenchError as error:
            return NOTHING, message(error), gr.skip(), gr.skip(), gr.skip(), gr.update(selected="inspect")

    curves.select(at_step, [run, other, order], [step, curves, listed], **quiet)
    listed.select(opened, run, [*inspect.outputs, tabs], **quiet)
    ask.click(lambda name: asked(runs, name), run, answer_note, api_visibility="private", show_progress="minimal")
    return run, other


def span(runs: Runs, name: str | None) -> tuple[int, int]:
    """The first and the last step of a run's record; 0 and 0 where it has none."""
    try:
        steps = [step for step in list(runs.index(name).by_step) if step is not None] if name else []
    except WorkbenchError:
        steps = []
    return (min(steps), max(steps)) if steps else (0, 0)


def curve_data(runs: Runs, name: str | None, second: str | None, step: int) -> str:
    """The curves of one run or two, as text for the page."""
    if not name:
        return as_json({"note": "There is no run in the runs folder yet."})
    try:
        curves = [_curves(runs, run) for run in (name, second) if run]
        rows = len(runs.index(name).entries)
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    none = (
        f"This run has no training steps: {'its one row is' if rows == 1 else f'its {rows} rows are'} listed below."
        if rows
        else NO_ROLLOUTS
    )
    series = [{"name": column, "title": title, "share": share} for column, title, share in _series(curves)]
    return as_json({"runs": curves, "series": series, "step": step, "note": none})


def _series(curves: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    """What there may be curves of: `SERIES`, and behind the reward what it is made of; every run gets all of them."""
    parts = list(dict.fromkeys(column for run in curves for column in run["series"] if column.startswith(tuple(PARTS))))
    for run in curves:
        for part in parts:
            run["series"].setdefault(part, [None] * len(run["steps"]))
    made_of = [
        (f"{kind}:{name}", f"{PARTS[kind]} {name.replace('_', ' ')}", False)
        for kind, _, name in (part.partition(":") for part in parts)
    ]
    return [*SERIES[:2], *made_of, *SERIES[2:]]


def _curves(runs: Runs, name: str) -> dict[str, Any]:
    rows: Mapping[int, Mapping[str, Any]] = {row["step"]: row for row in runs.metrics(name) if type(row.get("step")) is int}
    index = runs.index(name)
    if not rows and index.entries:
        rows = step_rows(runs.folder(name) / ROLLOUTS, own_method(runs, name))
    steps = sorted(step for step in {*rows, *index.by_step} if step is not None)
    parts = dict.fromkeys(column for row in rows.values() for column in row if column.startswith(tuple(PARTS)))
    columns: dict[str, list[float | None]] = {
        column: [_number(rows.get(step, {}).get(column)) for step in steps]
        for column in (*(name for name, _, _ in SERIES), *parts)
    }
    for place, step in enumerate(steps):
        entries = index.by_step.get(step, [])
        claims = sum(entry.claims for entry in entries)
        columns["unplaced"][place] = sum(entry.unplaced for entry in entries) / claims if claims else None
        failed = columns["failed"][place]
        columns["failed"][place] = failed / len(entries) if failed is not None and entries else None
    return {"name": name, "steps": steps, "series": columns}


def _number(value: Any) -> float | None:
    """What a curve can draw: a damaged or diverged value is a gap in it."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def before_after(runs: Runs, name: str | None) -> str:
    """The evaluation before training and after it, from the run's summary."""
    try:
        with damage(f"run '{name}': summary.json"):
            summary = runs.described(name, "summary.json") if name else {}
            before, after = (summary.get(when) or {} for when in ("before", "after"))
            rows = [
                [f"{rate.capitalize()}, {mode}", _cell(before, mode, rate), _cell(after, mode, rate)]
                for mode in ("greedy", "sampled")
                for rate in ("accuracy", "abstention", "hallucination", "truthfulness")
                if _cell(before, mode, rate) or _cell(after, mode, rate)
            ]
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    if not rows:
        return as_json({"note": "This run has no evaluation before and after training."})
    count = f"{before.get('n', after.get('n'))} questions of split {before.get('split', after.get('split'))}, 95 % intervals"
    return as_json({"note": count, "table": {"head": ["", "Before", "After"], "rows": rows}})


def _cell(report: Mapping[str, Any], mode: str, rate: str) -> str:
    cell = (report.get(mode) or {}).get(rate) or {}
    if not isinstance(cell, Mapping) or cell.get("value") is None:
        return ""
    low, high = cell.get("low"), cell.get("high")
    text = f"{cell['value']:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else "")
    return text.replace("-", "\N{MINUS SIGN}")


def asked(runs: Runs, name: str | None) -> str:
    """The answers of the starting policy and the trained one to fixed prompts; what fails is shown, never raised."""
    try:
        if not name:
            raise WorkbenchError("choose a run first")
        if runs.described(name, "config.json").get("bench") != "tiny":
            raise WorkbenchError("the fixed prompts are the closed world's: they are asked of runs on the tiny bench")
        if not (folder := runs.policy(name)):
            raise WorkbenchError("this run holds no trained policy of its own: choose a finished one")

        rows = answers(folder)
    except Exception as error:  # a missing base model, memory: whatever loading a policy can run into
        return as_json({"error": f"{error}" if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"})
    head = ["Tier", "Question", "Truth", "Before", "After"]
    return as_json({"table": {"head": head, "rows": [[row[key.lower()] for key in head] for row in rows]}})
