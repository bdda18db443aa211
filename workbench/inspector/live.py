"""The Live tab: sample and score answers of a policy, or answer a question from passages."""

import json
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING

from workbench.experiments.answering import Sources, answer_from, closed_world, stored
from workbench.experiments.answering.sources import question_text
from workbench.inspector.inspect_tab import InspectTab, shown_or_error
from workbench.inspector.listing import listed_row
from workbench.inspector.opened import Opened, open_feedback
from workbench.inspector.parts import BUSY, QUIET, component, gradio_arguments, page_json
from workbench.inspector.runs import Runs
from workbench.inspector.token_view import as_json
from workbench.methods.bench import bench
from workbench.pipeline import grade
from workbench.policies.generate import Policy, generate
from workbench.retrieval import list_indexes
from workbench.retrieval.encoder import PACKAGED
from workbench.retrieval.index import ROOT
from workbench.runs.store import leads_out
from workbench.types import TWO_FACETS, Feedback, JsonMapping, JsonObject, Question, WorkbenchError
from workbench.util.threads import use_threads

if TYPE_CHECKING:
    from gradio import EventData, Tabs
    from gradio.components import Component

SHIPPED = {
    "The tiny policy": "sft",
    "The tiny policy before SFT": "base",
}
PAGES = "The closed world's pages"
# kinds of test questions to draw from, with equal probability
KINDS = ("single", "numeric", "biography", TWO_FACETS)
NEW_TOKENS = 96
VERIFIED = ("fact", "outcome", "checklist", "reasoning")  # the checks of a sampled answer
TO_ASK = (
    "Write a question, or draw one about the closed world that the tiny policy was trained on, and"
    " press Ask: the answers are listed here with their rewards by every method. The prompt has the"
    " system prompt and the number of retrieved passages of the policy's training. Answer with"
    " sources searches passages first, and shows the sources of every sentence. The first answer"
    " takes some seconds, because the policy is loaded."
)
EMPTY = as_json({})
CACHED = 32  # questions whose answers can be opened

_lock = Lock()  # one policy at a time: two would compete for cores and memory
_answers: dict[str, tuple[Feedback, ...]] = {}  # group id -> its sampled answers


def live_tab(runs: Runs, inspect: InspectTab, tabs: "Tabs") -> "tuple[Component, Component]":
    """Build the Live tab and connect its events; return the policy menu and the passage menu.

    Args:
        inspect: the tab in which a clicked answer is opened.
        tabs: the page's tabs, to select that tab.
    """
    import gradio as gr

    with gr.Row(elem_classes="wb-source"):
        policy = gr.Dropdown(
            list(SHIPPED), value=next(iter(SHIPPED)), label="Policy", min_width=220, scale=2
        )
        count = gr.Slider(1, 16, value=6, step=1, label="Answers to sample", min_width=150)
        temperature = gr.Slider(0, 1.5, value=1.0, step=0.05, label="Temperature", min_width=150)
    with gr.Row(elem_classes="wb-source", equal_height=True):
        text = gr.Textbox(
            label="Question",
            lines=1,
            max_lines=4,
            scale=4,
            min_width=240,
            placeholder="Which company employs Ranam Nunumel?",
        )
        draw = gr.Button("Draw a question of the closed world", scale=0, min_width=270)
        ask = gr.Button("Ask", variant="primary", scale=0, min_width=90)
    with gr.Row(elem_classes="wb-source", equal_height=True):
        store = gr.Dropdown(
            [PAGES], value=PAGES, label="Passages to answer from", min_width=240, scale=4
        )
        source = gr.Button("Answer with sources", scale=0, min_width=190)
    sourced = component("Answer", elem_id="sourced-view")
    answer_list = component("List", {"note": TO_ASK})
    group = gr.State("")

    @gradio_arguments(event="EventData")
    def select(key: str, event: "EventData") -> tuple[object, ...]:
        opened = shown_or_error(open_answer, key, str(event._data["id"]))
        return *opened, gr.update(selected="inspect")

    # disabled until the new question has arrived: Ask would read the old text
    enable = lambda on: (gr.update(interactive=on),) * 2  # noqa: E731
    draw.click(partial(enable, False), None, [ask, source], **QUIET).then(
        some_question, None, text, **{**QUIET, "queue": True}
    ).then(partial(enable, True), None, [ask, source], **QUIET)

    def sample(*fields: object) -> tuple[str, str, str]:
        answers = ask_policy(runs, *fields)
        return answers, json.loads(answers).get("group", ""), EMPTY

    outputs = [answer_list, group, sourced]
    gr.on([ask.click, text.submit], sample, [policy, text, count, temperature], outputs, **BUSY)
    source.click(
        lambda *fields: (EMPTY, "", sourced_answer(runs, *fields)),
        [policy, text, store],
        outputs,
        **BUSY,
    )
    answer_list.select(select, group, [inspect.view, inspect.note, tabs], **QUIET)
    return policy, store


def policies(runs: Runs) -> list[str]:
    """Return the choices of the policy menu: shipped policies, and runs that trained a policy."""
    names = [*SHIPPED]
    for name in runs.names():
        with suppress(WorkbenchError):  # selecting a damaged run shows its error
            names += [name] if runs.policy(name) else []
    return names


def some_question() -> str:
    """Return a random question of the closed world's test split."""
    import random

    return random.choice(bench("tiny").questions("test", [random.choice(KINDS)])).text


def indexes(runs: Runs) -> list[str]:
    """Return the choices of the passage menu: the closed world's pages and the search indexes."""
    return [PAGES, *_cards(runs)]


def _cards(runs: Runs) -> dict[str, JsonMapping]:
    """Return the cards (stored descriptions) of the finished indexes, by index name.

    Indexes with a link out of the runs folder are left out.
    """
    root = runs.root / ROOT.name
    return {
        card["name"]: card
        for card in list_indexes(root)
        if card.get("status") == "complete" and not leads_out(root / card["name"], runs.root)
    }


def sources_of(runs: Runs, store: str) -> Sources:
    """Return the searchable passages of the entry `store` in the passage menu.

    If an index needs an encoder that is not shipped with the workbench, it is searched by words
    instead of vectors.

    Raises:
        WorkbenchError: there is no such index, or it cannot be searched.
    """
    if store == PAGES:
        return closed_world()
    if (card := _cards(runs).get(store)) is None:
        raise WorkbenchError(
            f"no index '{store[:60]}' in the runs folder: choose an index in the list"
        )
    # an index may come from other people, and its encoder may have to be downloaded
    return stored(store, None if card["encoder"] in PACKAGED else "text", runs.root / ROOT.name)


@page_json(Exception)  # loading a policy can raise many types of exceptions
def ask_policy(runs: Runs, policy: str, text: str, count: float, temperature: float) -> JsonObject:
    """Sample `count` answers to the question `text`; return them and their rewards as JSON text.

    The object has "rows" (each answer, from `listed_row`), "methods" (those that scored an answer),
    "note" (with the gold answer, if known) and "group" (the argument of `open_answer`). After an
    error, it is {"error": message}.

    Args:
        policy: an entry of the policy menu.
        temperature: sampling temperature; 0: one greedy answer.
    """
    rows = answers_of(runs, policy, text, count=int(count), temperature=float(temperature))
    gold = " or ".join(rows[0].response.question.answers)
    note = "The closed world has no such question, so there is no gold answer."
    if gold:
        note = f"Gold answer: {gold}."
    scored = {k for row in rows for k, reward in row.rewards.items() if reward.value is not None}
    return {
        "methods": [method for method in rows[0].rewards if method in scored],
        "note": f"{note} Click an answer to open it in Inspect.",
        "rows": [listed_row(row) for row in rows],
        "group": rows[0].response.group,
    }


@page_json(Exception)
def sourced_answer(runs: Runs, policy: str, text: str, store: str) -> JsonObject:
    """Answer a question from passages, like the command `workbench answer`; return JSON text.

    The object is that of `workbench answer --json`, or {"error": message} after an error.

    Args:
        policy, store: entries of the policy menu and of the passage menu.
        text: the question.
    """
    question, name = question_text(text), _policy_path(runs, policy)
    sources = sources_of(runs, store)
    with _lock, use_threads(2):
        path = bench("tiny").path(name)
        return answer_from(sources, question, lambda: _load(name), path).to_row()


def _policy_path(runs: Runs, policy: str) -> str:
    """Return the name of a shipped policy in the menu, or the folder of a run with a policy."""
    if not (name := SHIPPED.get(policy) or runs.policy(policy)):
        raise WorkbenchError(f"run '{policy}' has no trained policy: choose a policy in the list")
    return str(name)


def answers_of(
    runs: Runs, policy: str, text: str, count: int, temperature: float
) -> tuple[Feedback, ...]:
    """Sample `count` answers of a policy and judge them by the closed world's facts.

    Return the answers with the rewards of every method with its default config. Temperature 0 gives
    one greedy answer. The prompt has the system prompt and the number of retrieved passages of the
    policy's training. `open_answer` can open the returned answers later.

    Raises:
        WorkbenchError: `text` is empty, or there is no such policy.
    """
    # not when the page starts: it imports the metrics
    from workbench.experiments.evaluate import as_in_training

    if not text or not text.strip():
        raise WorkbenchError("there is no question: write one, or draw one of the closed world")
    name, tiny = _policy_path(runs, policy), bench("tiny")
    checks = tiny.checks
    question = Question(f"live/{abs(hash((policy, text)))}", text.strip())
    question = checks.recognise(question) if checks.recognise else question
    prompted = as_in_training(replace(tiny, questions=lambda: [question]), name).questions()
    sampling: JsonObject = (
        {"samples": count, "temperature": temperature} if temperature else {"greedy": True}
    )
    with _lock, use_threads(2):
        responses = generate(
            _load(name), prompted, max_new_tokens=NEW_TOKENS, logprobs=True, **sampling
        )
    verify = [check for need, check in checks.verify.items() if need in VERIFIED]
    rows = tuple(grade(verify, {}, checks.extract)(responses))
    opened = open_feedback(rows[0], rows, f"live · {policy}")
    # kept in memory only: sampled answers are not stored in the runs folder
    _answers[opened.group[0].response.group] = opened.group
    while len(_answers) > CACHED:
        del _answers[next(iter(_answers))]
    return opened.group


def open_answer(group: str, row: str) -> Opened:
    """Open an answer that `answers_of` sampled, by the ids of its group and its row.

    Raises:
        WorkbenchError: the group is no longer cached.
    """
    rows = _answers.get(group, ())
    answer = next((feedback for feedback in rows if feedback.response.id == row), None)
    if answer is None:
        raise WorkbenchError("this answer is no longer in memory: ask the question again")
    return open_feedback(answer, rows, "live")


@lru_cache(maxsize=2)
def _load(name: str) -> Policy:
    return bench("tiny").load(name)
