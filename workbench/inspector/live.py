"""Live: ask a policy, sample some answers, see what each would earn."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any

from workbench.bench import bench
from workbench.checks import world_checks
from workbench.generate import generate
from workbench.grade import grade
from workbench.inspector.inspect_tab import InspectTab
from workbench.inspector.opened import NOTHING, Opened, open_feedback, show
from workbench.inspector.parts import component, message, told
from workbench.inspector.rollouts import listed_row
from workbench.inspector.runs import Runs
from workbench.inspector.samples import lookup
from workbench.threads import use_threads
from workbench.token_view import as_json
from workbench.types import Feedback, Question, WorkbenchError
from workbench.world import load_world

SHIPPED = {"The tiny policy": "sft", "The tiny policy before SFT": "base"}
NEW_TOKENS = 96
TO_ASK = (
    "Write a question, or draw one of the closed world that the tiny policy was trained on, and press Ask: its answers "
    "are listed here with what every method pays for them. The first one loads the policy, which takes some seconds."
)
KEPT = 32  # questions whose answers can still be opened

_asking = Lock()  # one policy at a time: two would share the cores and the memory
_answers: dict[str, tuple[Feedback, ...]] = {}  # group -> its answers, for opening one of them


def live_tab(runs: Runs, inspect: InspectTab, tabs: Any) -> Any:
    """Lay the tab out and wire it; returns the box of policies, for the page to fill."""
    import gradio as gr

    with gr.Row(elem_classes="wb-source"):
        policy = gr.Dropdown(list(SHIPPED), value=next(iter(SHIPPED)), label="Policy", min_width=220, scale=2)
        count = gr.Slider(1, 16, value=6, step=1, label="Answers to sample", min_width=150)
        heat = gr.Slider(0, 1.5, value=1.0, step=0.05, label="Temperature", min_width=150)
    with gr.Row(elem_classes="wb-source", equal_height=True):
        text = gr.Textbox(
            label="Question", lines=1, max_lines=4, scale=4, min_width=240, placeholder="Which company employs Ranam Nunumel?"
        )
        draw = gr.Button("Draw a question of the closed world", scale=0, min_width=270)
        ask = gr.Button("Ask", variant="primary", scale=0, min_width=90)
    listed = component("List", {"note": TO_ASK})
    group = gr.State("")

    @told(event="EventData")
    def opened(key: str, event: Any) -> tuple[Any, ...]:
        try:
            view = show(open_answer(key, str(event._data["id"])))
            return view, message(), gr.update(selected="inspect")
        except WorkbenchError as error:
            return NOTHING, message(error), gr.update(selected="inspect")

    private = {"api_visibility": "private"}
    draw.click(some_question, None, text, **private, show_progress="hidden")
    answer = lambda *fields: ask_policy(runs, *fields)  # noqa: E731
    gr.on([ask.click, text.submit], answer, [policy, text, count, heat], [listed, group], **private, show_progress="minimal")
    listed.select(opened, group, [inspect.view, inspect.note, tabs], **private, queue=False, show_progress="hidden")
    return policy


def policies(runs: Runs) -> list[str]:
    """The shipped policies, and the runs that hold a trained one."""
    return [*SHIPPED, *(name for name in runs.names() if _has_policy(runs, name))]


def _has_policy(runs: Runs, name: str) -> bool:
    try:
        return runs.policy(name) is not None
    except WorkbenchError:  # a run that cannot be opened: told where it is chosen
        return False


def some_question() -> str:
    """A question of the closed world's test split."""
    import random

    return random.choice(load_world().questions("test", ["single", "numeric", "yes_no"])).text


def ask_policy(runs: Runs, policy: str, text: str, count: float, temperature: float) -> tuple[str, str]:
    """Sampled answers with what each method pays, as text for the page, and the key of their group."""
    try:
        rows = answers_of(runs, policy, text, count=int(count), temperature=float(temperature))
    except Exception as error:  # a policy of any origin is loaded here: whatever goes wrong is shown
        reason = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
        return as_json({"error": reason}), ""
    methods = [method for method in rows[0].rewards if any(row.rewards[method].value is not None for row in rows)]
    gold = " or ".join(rows[0].response.question.answers)
    note = f"Gold answer: {gold}." if gold else "The closed world does not know this question: there is no gold answer."
    note += " Click an answer to open it in Inspect."
    return as_json({"methods": methods, "note": note, "rows": [listed_row(row) for row in rows]}), rows[0].response.group


def answers_of(runs: Runs, policy: str, text: str, count: int, temperature: float) -> tuple[Feedback, ...]:
    """Ask, check against the closed world, pay by every method with its defaults.

    Raises:
        WorkbenchError: no question, or no such policy.
    """
    if not text or not text.strip():
        raise WorkbenchError("there is no question: write one, or take one of the world")
    name = SHIPPED.get(policy) or runs.policy(policy)
    if not name:
        raise WorkbenchError(f"run '{policy}' holds no policy of its own: choose one of the list")
    checks = world_checks(load_world())
    question = Question(f"live/{abs(hash((policy, text)))}", text.strip())
    question = checks.recognise(question) if checks.recognise else question
    sampling: dict[str, Any] = {"greedy": True} if not temperature else {"samples": count, "temperature": temperature}
    with _asking, use_threads(2):
        responses = generate(_load(str(name)), [question], max_new_tokens=NEW_TOKENS, logprobs=True, **sampling)
    able = [check for need, check in checks.verify.items() if need in ("fact", "outcome", "checklist", "reasoning")]
    rows = tuple(grade(able, {}, checks.extract)(responses))
    opened = open_feedback(rows[0], rows, f"live · {policy}")
    _answers[opened.group[0].response.group] = opened.group
    while len(_answers) > KEPT:
        del _answers[next(iter(_answers))]
    return opened.group


def open_answer(group: str, row: str) -> Opened:
    rows = _answers.get(group, ())
    answer = next((feedback for feedback in rows if feedback.response.id == row), None)
    if answer is None:
        raise WorkbenchError("this answer is no longer at hand: ask again")

    return open_feedback(answer, rows, "live", lookup=lookup)


@lru_cache(maxsize=2)
def _load(name: str) -> Any:
    return bench("tiny").load(name)
