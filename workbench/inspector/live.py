"""The Live page: sample answers of a policy with their rewards, or get one answer with sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

from workbench.experiments.answering import Answer, Sources, answer_from, closed_world, stored
from workbench.experiments.answering.sources import question_text
from workbench.inspector.inspect_tab import InspectTab
from workbench.inspector.listing import listed_row
from workbench.inspector.opened import NOTHING, Opened, open_feedback, show
from workbench.inspector.parts import component, message, told
from workbench.inspector.runs import Runs
from workbench.inspector.token_view import as_json
from workbench.methods.bench import bench
from workbench.pipeline import grade
from workbench.policies.generate import generate
from workbench.retrieval import list_indexes
from workbench.retrieval.encoder import PACKAGED
from workbench.retrieval.index import ROOT
from workbench.runs.store import leads_out
from workbench.types import TWO_FACETS, Feedback, Question, WorkbenchError
from workbench.util.threads import use_threads
from workbench.verdicts.checks import world_checks
from workbench.world import load_world

SHIPPED = {"The tiny policy": "sft", "The tiny policy before SFT": "base"}
PAGES = "The closed world's pages"
# kinds of questions of the test split, one as likely as the other
DRAWN = ("single", "numeric", "biography", TWO_FACETS)
NEW_TOKENS = 96
TO_ASK = (
    "Write a question, or draw one of the closed world that the tiny policy was trained on, and"
    " press Ask: its answers are listed here with what every method pays for them. Answer with"
    " sources searches passages for the question first, and shows what every sentence of the answer"
    " rests on. The first answer loads the policy, which takes some seconds."
)
NOTHING_SHOWN = as_json({})
KEPT = 32  # questions whose answers can still be opened

_asking = Lock()  # one policy at a time: two would share the cores and the memory
_answers: dict[str, tuple[Feedback, ...]] = {}  # group -> its answers, for opening one of them


def live_tab(runs: Runs, inspect: InspectTab, tabs: Any) -> Any:
    """Lay the tab out and wire it; returns the boxes of policies and of sources, for the page to
    fill.
    """
    import gradio as gr

    with gr.Row(elem_classes="wb-source"):
        policy = gr.Dropdown(
            list(SHIPPED), value=next(iter(SHIPPED)), label="Policy", min_width=220, scale=2
        )
        count = gr.Slider(1, 16, value=6, step=1, label="Answers to sample", min_width=150)
        heat = gr.Slider(0, 1.5, value=1.0, step=0.05, label="Temperature", min_width=150)
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
    # Nothing can be asked while the question is on its way: the box would be read as it was, empty
    # at first.
    enabled = lambda on: lambda: (gr.update(interactive=on),) * 2  # noqa: E731
    quiet: dict[str, Any] = {**private, "show_progress": "hidden"}
    drawn = draw.click(enabled(False), None, [ask, source], **quiet, queue=False).then(
        some_question, None, text, **quiet
    )
    drawn.then(enabled(True), None, [ask, source], **quiet, queue=False)
    answer = lambda *fields: (*ask_policy(runs, *fields), NOTHING_SHOWN)  # noqa: E731
    gr.on(
        [ask.click, text.submit],
        answer,
        [policy, text, count, heat],
        [listed, group, sourced],
        **private,
        show_progress="minimal",
    )
    look_up = lambda *fields: (*sourced_answer(runs, *fields), "")  # noqa: E731
    source.click(
        look_up, [policy, text, store], [sourced, listed, group], **private, show_progress="minimal"
    )
    listed.select(
        opened,
        group,
        [inspect.view, inspect.note, tabs],
        **private,
        queue=False,
        show_progress="hidden",
    )
    return policy, store


def policies(runs: Runs) -> list[str]:
    """The shipped policies, and the runs that hold a trained one."""
    return [*SHIPPED, *(name for name in runs.names() if _has_policy(runs, name))]


def _has_policy(runs: Runs, name: str) -> bool:
    try:
        return runs.policy(name) is not None
    except WorkbenchError:  # a damaged run: an error where it is chosen
        return False


def some_question() -> str:
    """A question of the closed world's test split."""
    import random

    return random.choice(bench("tiny").questions("test", [random.choice(DRAWN)])).text


def indexes(runs: Runs) -> list[str]:
    """The sources of an answer: the closed world's pages, and the finished indexes in the runs
    folder.
    """
    return [PAGES, *_cards(runs)]


def _cards(runs: Runs) -> dict[str, Mapping[str, Any]]:
    """The cards of the finished indexes by name, without those linked from outside."""
    root = runs.root / ROOT.name
    whole = {card["name"]: card for card in list_indexes(root) if card.get("status") == "complete"}
    places = {name: [root / name, *(root / name).iterdir()] for name in whole}
    return {
        name: card
        for name, card in whole.items()
        if not any(leads_out(path, runs.root) for path in places[name])
    }


def sources_of(runs: Runs, store: str) -> Sources:
    """The sources of that name. Vectors of an index are searched only with the packaged encoder:
    a card may name any other, which is not loaded.

    Raises:
        WorkbenchError: there are no such sources, or they cannot be searched.
    """
    if store == PAGES:
        return closed_world()
    if (card := _cards(runs).get(store)) is None:
        raise WorkbenchError(f"no index '{store[:60]}' in the runs folder: choose one of the list")
    return stored(store, None if card["encoder"] in PACKAGED else "text", runs.root / ROOT.name)


def ask_policy(
    runs: Runs, policy: str, text: str, count: float, temperature: float
) -> tuple[str, str]:
    """Sampled answers with what each method pays, as text for the page, and the key of their
    group.
    """
    try:
        rows = answers_of(runs, policy, text, count=int(count), temperature=float(temperature))
    # a policy of any origin is loaded here: whatever goes wrong is shown
    except Exception as error:
        return as_json({"error": _reason(error)}), ""
    methods = [
        method
        for method in rows[0].rewards
        if any(row.rewards[method].value is not None for row in rows)
    ]
    gold = " or ".join(rows[0].response.question.answers)
    note = (
        f"Gold answer: {gold}."
        if gold
        else "The closed world does not know this question: there is no gold answer."
    )
    note += " Click an answer to open it in Inspect."
    return (
        as_json({"methods": methods, "note": note, "rows": [listed_row(row) for row in rows]}),
        rows[0].response.group,
    )


def sourced_answer(runs: Runs, policy: str, text: str, store: str) -> tuple[str, str]:
    """An answer with its sources, and an empty list of sampled ones, both as text for the page."""
    try:
        return as_json(answer_with_sources(runs, policy, text, store).to_row()), NOTHING_SHOWN
    except Exception as error:  # as in `ask_policy`
        return as_json({"error": _reason(error)}), NOTHING_SHOWN


def answer_with_sources(runs: Runs, policy: str, text: str, store: str) -> Answer:
    """What `workbench answer` gives, by a policy and an index of the lists.

    Raises:
        WorkbenchError: no question, no such policy, or no such sources.
    """
    asked, name = question_text(text), _named(runs, policy)
    sources = sources_of(runs, store)
    with _asking, use_threads(2):
        return answer_from(sources, asked, lambda: _load(name), bench("tiny").path(name))


def _named(runs: Runs, policy: str) -> str:
    """The name or folder that a policy of the list is loaded by."""
    if not (name := SHIPPED.get(policy) or runs.policy(policy)):
        raise WorkbenchError(f"run '{policy}' holds no policy of its own: choose one of the list")
    return str(name)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"


def answers_of(
    runs: Runs, policy: str, text: str, count: int, temperature: float
) -> tuple[Feedback, ...]:
    """Ask, check against the closed world, pay by every method with its defaults.

    Raises:
        WorkbenchError: no question, or no such policy.
    """
    if not text or not text.strip():
        raise WorkbenchError("there is no question: write one, or take one of the world")
    name = _named(runs, policy)
    checks = world_checks(load_world())
    question = Question(f"live/{abs(hash((policy, text)))}", text.strip())
    question = checks.recognise(question) if checks.recognise else question
    sampling: dict[str, Any] = (
        {"greedy": True} if not temperature else {"samples": count, "temperature": temperature}
    )
    with _asking, use_threads(2):
        responses = generate(
            _load(name), [question], max_new_tokens=NEW_TOKENS, logprobs=True, **sampling
        )
    able = [
        check
        for need, check in checks.verify.items()
        if need in ("fact", "outcome", "checklist", "reasoning")
    ]
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

    return open_feedback(answer, rows, "live")


@lru_cache(maxsize=2)
def _load(name: str) -> Any:
    return bench("tiny").load(name)
