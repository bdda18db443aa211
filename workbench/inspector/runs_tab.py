"""Runs: how a training went, the rollouts of any step, and the same prompts before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.inspector.inspect_tab import InspectTab
from workbench.inspector.opened import configs_of, open_row, paid, show
from workbench.inspector.parts import component, message, told
from workbench.inspector.runs import Runs
from workbench.token_view import as_json
from workbench.types import Feedback, WorkbenchError

SHOWN = 60  # rollouts of a step that are listed
ORDERS = ("Reward, lowest first", "Reward, highest first", "Disagreement between methods")

# What is drawn over the steps: column of metrics.jsonl or of the record, title, whether it is a share.
SERIES = (
    ("reward", "Reward", False), ("accuracy", "Accuracy", True), ("abstention", "Abstention", True),
    ("hallucination", "Hallucination", True), ("kl", "KL to the reference", False), ("entropy", "Entropy", False),
    ("length", "Length, tokens", False), ("truncated", "Cut off", True), ("unplaced", "Claims not placed", True),
    ("failed", "Rows not scored", True),
)  # fmt: skip


def runs_tab(runs: Runs, inspect: InspectTab, tabs: Any, tab: Any) -> tuple[Any, Any]:
    """Lay the tab out and wire it; returns the two boxes that choose runs, for the page to fill."""
    import gradio as gr

    with gr.Row(elem_classes="wb-source"):
        run = gr.Dropdown([], label="Run", min_width=220)
        other = gr.Dropdown([], label="Compare with", min_width=220)
    curves = component("Curves", {"note": "Choose a run."})
    with gr.Row(elem_classes="wb-source"):
        step = gr.Slider(0, 1, value=0, step=1, label="Step", min_width=240, scale=2)
        order = gr.Radio(ORDERS, value=ORDERS[0], label="Sorted by", min_width=240, scale=3)
    listed = component("List", {"note": "The rollouts of the chosen step."})
    with gr.Accordion("Before and after", open=False):
        table = component("Note", {})
        ask = gr.Button("Ask the fixed prompts before and after", scale=0)
        answers = component(
            "Note", {"note": "Loads the starting policy and the trained one, and asks both the same questions, greedily."}
        )

    quiet = {"show_progress": "hidden", "api_visibility": "private", "queue": False}

    def chosen(name: str | None, second: str | None) -> tuple[Any, ...]:
        first, last = span(runs, name)
        return (
            gr.update(minimum=min(first, last - 1), maximum=last, value=last, interactive=last > first),  # a range of one fails
            curve_data(runs, name, second, last),
            rollouts(runs, name, last, ORDERS[0]),
            before_after(runs, name),
        )

    def compared(name: str | None, second: str | None, at: float) -> str:
        return curve_data(runs, name, second, int(at))

    other.input(compared, [run, other, step], curves, **quiet)
    gr.on([tab.select, run.input], chosen, [run, other], [step, curves, listed, table], **quiet)
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
            found = show(open_row(runs, name, row))
            return found, message(), "Stored run", name, runs.entry(name, row).number + 1, gr.update(selected="inspect")
        except WorkbenchError as error:
            return gr.skip(), message(error), gr.skip(), gr.skip(), gr.skip(), gr.update(selected="inspect")

    curves.select(at_step, [run, other, order], [step, curves, listed], **quiet)
    listed.select(opened, run, [*inspect.outputs, tabs], **quiet)
    ask.click(lambda name: asked(runs, name), run, answers, api_visibility="private", show_progress="minimal")
    return run, other


def span(runs: Runs, name: str | None) -> tuple[int, int]:
    """The first and the last step of a run's record; 0 and 0 where it has none."""
    try:
        steps = [step for step in runs.index(name).by_step if step is not None] if name else []
    except WorkbenchError:
        steps = []
    return (min(steps), max(steps)) if steps else (0, 0)


def curve_data(runs: Runs, name: str | None, second: str | None, step: int) -> str:
    """The curves of one run or two, as text for the page."""
    if not name:
        return as_json({"note": "There is no run in the runs folder yet."})
    try:
        drawn = [_curves(runs, one) for one in (name, second) if one]
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    series = [{"name": column, "title": title, "share": share} for column, title, share in SERIES]
    return as_json({"runs": drawn, "series": series, "step": step, "note": "This run has no steps: its rows are listed below."})


def _curves(runs: Runs, name: str) -> dict[str, Any]:
    rows = {row["step"]: row for row in runs.metrics(name)}
    index = runs.index(name)
    steps = sorted(step for step in {*rows, *index.by_step} if step is not None)
    columns: dict[str, list[float | None]] = {
        column: [rows.get(step, {}).get(column) for step in steps] for column, _, _ in SERIES
    }
    for place, step in enumerate(steps):
        found = index.by_step.get(step, [])
        claims = sum(entry.claims for entry in found)
        columns["unplaced"][place] = sum(entry.unplaced for entry in found) / claims if claims else None
        failed = columns["failed"][place]
        columns["failed"][place] = failed / len(found) if failed is not None and found else None
    return {"name": name, "steps": steps, "series": columns}


def rollouts(runs: Runs, name: str | None, step: int, order: str) -> str:
    """The rollouts of one step (of all rows, where a run has no steps), each paid by every method, as text for the page."""
    if not name:
        return as_json({"note": ""})
    try:
        by_step = runs.index(name).by_step
        entries = by_step.get(step) or by_step.get(None, [])
        rows = paid([runs.feedback(name, entry)[0] for entry in entries[:1024]], configs_of(runs, name))
    except WorkbenchError as error:
        return as_json({"error": str(error)})
    own = runs.described(name, "config.json").get("method") or (next(iter(rows[0].rewards)) if rows else "")
    ranked = sorted(with_disagreement(rows), key=_key(order, own))
    methods = dict.fromkeys(name for row in rows for name, reward in row.rewards.items() if reward.value is not None)
    note = f"{len(rows)} rollouts" + (f", the first {SHOWN} of them" if len(rows) > SHOWN else "") + "; a click opens one."
    return as_json(
        {"methods": list(methods), "note": note, "rows": [listed_row(row, spread) for row, spread in ranked[:SHOWN]]}
    )


def _key(order: str, method: str) -> Any:
    def key(pair: tuple[Feedback, float | None]) -> tuple[bool, float]:
        row, spread = pair
        reward = row.rewards.get(method)
        value = spread if order == ORDERS[2] else reward.value if reward else None
        return value is None, (value or 0.0) * (1 if order == ORDERS[0] else -1)

    return key


def with_disagreement(rows: Sequence[Feedback]) -> list[tuple[Feedback, float | None]]:
    """Each row with how far the methods disagree about it: the spread of its ranks *(ours)*.

    A method's scored rows are ranked from 0 (paid least) to 1 (paid most), equal ones alike; the disagreement is the highest
    rank less the lowest, and None where fewer than two methods score the row or tell any rows apart.
    """
    ranks: list[list[float]] = [[] for _ in rows]
    for method in {name for row in rows for name in row.rewards}:
        values = [row.rewards[method].value if method in row.rewards else None for row in rows]
        known = sorted({value for value in values if value is not None})
        if len(known) > 1:
            for place, value in enumerate(values):
                if value is not None:
                    ranks[place].append(known.index(value) / (len(known) - 1))
    return [(row, max(found) - min(found) if len(found) > 1 else None) for row, found in zip(rows, ranks, strict=True)]


def listed_row(row: Feedback, disagreement: float | None = None) -> dict[str, Any]:
    """What a list shows of a response."""
    outcome = row.verdict("outcome")
    return {
        "id": row.response.id,
        "question": row.response.question.text,
        "text": row.response.text[:400].encode("utf-8", "replace").decode(),
        "outcome": outcome.label if outcome and not outcome.error else "failed" if outcome else None,
        "values": {method: reward.value for method, reward in row.rewards.items()},
        "reasons": {method: reward.error.message for method, reward in row.rewards.items() if reward.error},
        "disagreement": disagreement,
    }


def before_after(runs: Runs, name: str | None) -> str:
    """The evaluation before training and after it, from the run's summary."""
    summary = runs.described(name, "summary.json") if name else {}
    before, after = (summary.get(when) or {} for when in ("before", "after"))
    rows = [
        [f"{rate}, {mode}", _cell(before, mode, rate), _cell(after, mode, rate)]
        for mode in ("greedy", "sampled")
        for rate in ("accuracy", "abstention", "hallucination", "truthfulness")
        if _cell(before, mode, rate) or _cell(after, mode, rate)
    ]
    if not rows:
        return as_json({"note": "This run has no evaluation before and after training."})
    count = f"{before.get('n', after.get('n'))} questions of split {before.get('split', after.get('split'))}, 95 % intervals"
    return as_json({"note": count, "table": {"head": ["", "Before", "After"], "rows": rows}})


def _cell(report: Mapping[str, Any], mode: str, rate: str) -> str:
    cell = (report.get(mode) or {}).get(rate) or {}
    if not isinstance(cell, Mapping) or cell.get("value") is None:
        return ""
    low, high = cell.get("low"), cell.get("high")
    shown = f"{cell['value']:.3f}" + (f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else "")
    return shown.replace("-", "\N{MINUS SIGN}")


def asked(runs: Runs, name: str | None) -> str:
    """The answers of the starting policy and the trained one to fixed prompts; what fails is shown, never raised."""
    try:
        if not name:
            raise WorkbenchError("choose a run first")
        if runs.described(name, "config.json").get("bench") != "tiny":
            raise WorkbenchError("the fixed prompts are the closed world's: they are asked of runs on the tiny bench")
        from workbench.demo import answers

        rows = answers(runs.folder(name))
    except Exception as error:  # a missing base model, memory: whatever loading a policy can run into
        return as_json({"error": f"{error}" if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"})
    head = ["Tier", "Question", "Truth", "Before", "After"]
    return as_json({"table": {"head": head, "rows": [[row[key.lower()] for key in head] for row in rows]}})
