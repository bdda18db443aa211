"""Strict parsing of replies: a reply that only looks like a verdict is a failure."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import examples
from workbench.judge import LABELS, TASKS, read
from workbench.judge.wire import RAW
from workbench.types import Failure, JsonObject

LABELLED = ("verify", "outcome", "reasoning", "prefer", "coherence", "helpfulness")
VALID: JsonObject = dict(examples("valid_replies"))


def value(task: str) -> Any:
    return (
        VALID[task]
        if task in ("extract", "single_pass", "outline")
        else next(iter(VALID[task].values()))
    )


def kind(task: str, text: str, count: int | None = None) -> str:
    found = read(task, text, count)
    assert isinstance(found, Failure), f"read as {found!r}"
    assert found.stage == "parse" and len(found.raw) <= RAW and len(found.message) < 500
    json.dumps([found.raw, found.message]).encode()
    (found.raw + found.message).encode()
    return found.kind


@pytest.mark.parametrize("task", TASKS)
def test_the_declared_object_is_read(task: str) -> None:
    text = json.dumps(VALID[task])
    for accepted in (
        text,
        f"\n {json.dumps(VALID[task], indent=2)} \n",
        f"```json\n{text}\n```",
        f"```\r\n{text}\n```\n",
    ):
        assert read(task, accepted) == value(task)
        # a reasoning judge's thoughts may quote anything
        for thoughts in ("", ' {"label": "wrong"} ', " <think>Ada.</think>{} and then "):
            assert read(task, f"\n<think>{thoughts}</think>\n\n{accepted}\n") == value(task)


FORMS_OF_THOUGHTS = examples("forms_of_thoughts")


@pytest.mark.parametrize(("before", "after"), FORMS_OF_THOUGHTS, ids=lambda part: part[:12])
def test_thinking_of_other_models_is_removed(before: str, after: str) -> None:
    for task in ("verify", "extract"):
        assert read(task, before + json.dumps(VALID[task]) + after) == value(task)


@pytest.mark.parametrize("task", LABELLED)
def test_every_label_in_any_case_and_no_other(task: str) -> None:
    for label in LABELS[task]:
        assert read(task, json.dumps({"label": label})) == label
        assert read(task, json.dumps({"label": label.title()})) == label
    for label in (
        "supported",
        "",
        "not_correct",
        "in correct",
        "correct.",
        " correct",
        "correct wrong",
    ):
        assert kind(task, json.dumps({"label": label})) == "label"
    # a label of another task
    assert kind("verify", '{"label": "Incorrect"}') == "label"


NO_VERDICTS = [
    *examples("no_verdicts"),
    ('{"label": ' * 50_000, "too_long"),
    ("[" * 150_000, "not_json"),
    ('{"label": "' + "correct " * 20_000 + '"}', "label"),
]


@pytest.mark.parametrize(("text", "expected"), NO_VERDICTS, ids=lambda part: ascii(part[:24]))
def test_replies_that_only_look_like_a_verdict_are_failures(text: str, expected: str) -> None:
    assert kind("verify", text) == expected
    for task in TASKS:
        kind(task, text)


@pytest.mark.parametrize("filler", ["```json\n", "{", " ", '{"a":', "\\", "\n"])
def test_the_longest_parsed_replies_take_linear_time(filler: str) -> None:
    """A quadratic step would not finish."""
    text = filler * (199_000 // len(filler))
    assert kind("verify", text + filler * 2_000) == "too_long"
    kind("verify", f"```json\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        "Bo [Answer] Rome.",
        "Bo [Outline] Bo",
        "Bo </think>",
        "Bo [2] 2. Ada",
        "Bo\n2. Ada",
        "<Answer>Bo",
    ],
)
def test_markers_of_a_plan_within_its_texts_are_refused(text: str) -> None:
    plan = {
        "structure": "parallel",
        "points": [{"text": text, "passage": 1}, {"text": "Ada", "passage": 1}],
    }
    assert kind("outline", json.dumps(plan)) == "form"
    if "2." not in text:  # a point's number is not a marker in an answer
        assert kind("expand", json.dumps({"answer": text})) == "form"


@pytest.mark.parametrize(
    ("answer", "expected"),
    examples("wrong_citations"),
)
def test_an_answer_may_cite_only_existing_passages(answer: Any, expected: str) -> None:
    assert kind("expand", json.dumps({"answer": answer}), 3) == expected
    assert (
        read("expand", '{"answer": "A [3], in 2019 [1, 2] and a[i] [1-3]."}', 3)
        == "A [3], in 2019 [1, 2] and a[i] [1-3]."
    )


def text(value: Any) -> bool:
    return isinstance(value, str) and any(map(str.isalnum, value)) and "\ud800" not in value


def label(task: str) -> Any:
    return lambda value: isinstance(value, str) and value.lower() in LABELS[task]


def whole(most: int) -> Any:
    return lambda value: type(value) is int and 1 <= value <= most


def sentences(claim: Any) -> Any:
    return {"sentences": ({"text": text, "claims": (claim, 0, 99)}, 0, 99)}


POINT = {"text": text, "passage": whole(3)}
JUDGED = {"text": text, "label": label("single_pass"), "informativeness": whole(5)}
# the declared form per task, for 3 ratings, labels or passages; a list is (entry, least, most)
DECLARED: JsonObject = {
    **{task: {"label": label(task)} for task in LABELLED},
    "extract": sentences(text),
    "single_pass": sentences(JUDGED),
    "inform": {"ratings": (whole(5), 3, 3)},
    "checklist": {"labels": (label("checklist"), 3, 3)},
    "outline": {"structure": label("outline"), "points": (POINT, 1, 5)},
    "expand": {"answer": text},
}


def fits(value: Any, form: Any) -> bool:
    if callable(form):
        return bool(form(value))
    if isinstance(form, dict):
        same = isinstance(value, dict) and value.keys() == form.keys()
        return same and all(fits(value[key], form[key]) for key in form)
    entry, least, most = form
    sized = isinstance(value, list) and least <= len(value) <= most
    return sized and all(fits(one, entry) for one in value)


JUNK: list[Any] = [
    None,
    True,
    0,
    1,
    4,
    5,
    6,
    2.0,
    "3",
    "",
    " … ",
    "Correct",
    "incorrect",
    "A\ud800.",
    {},
]


def damaged(value: Any) -> Iterator[Any]:
    """Variants of the value with one part replaced, removed, repeated or added."""
    yield from JUNK
    if isinstance(value, dict):
        yield {**value, "why": "x"}
        for key in value:
            yield {name: value[name] for name in value if name != key}
            for other in damaged(value[key]):
                yield {**value, key: other}
    if isinstance(value, list):
        yield from ([], value * 2, value * 6)
        for place, one in enumerate(value):
            yield [*value[:place], *value[place + 1 :]]
            for other in damaged(one):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.parametrize("task", TASKS)
def test_a_reply_is_read_only_if_it_has_the_declared_form(task: str) -> None:
    for reply in damaged(VALID[task]):
        found = read(task, json.dumps(reply), 3)
        assert isinstance(found, Failure) != fits(reply, DECLARED[task]), reply
        if isinstance(found, Failure):
            kind(task, json.dumps(reply), 3)
        elif task in LABELLED:
            assert found == reply["label"].lower()


@given(st.sampled_from(sorted(TASKS)), st.data())
def test_a_reply_cut_anywhere_is_a_failure(task: str, data: st.DataObject) -> None:
    text = json.dumps(VALID[task])
    kind(task, text[: data.draw(st.integers(0, len(text) - 1))])
