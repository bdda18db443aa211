"""Strict reading: a reply is right or a failure; nothing that only looks like a verdict becomes
one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.judge import LABELS, TASKS, read
from workbench.judge.wire import RAW
from workbench.types import Failure

LABELLED = ("verify", "outcome", "reasoning", "prefer")
VALID: dict[str, Any] = {
    "extract": {
        "sentences": [{"text": "A is B.", "claims": ["A is B"]}, {"text": "Hm 1.", "claims": []}]
    },
    "single_pass": {
        "sentences": [
            {
                "text": "A is B.",
                "claims": [{"text": "A is B", "label": "hedged_wrong", "informativeness": 5}],
            }
        ]
    },
    "verify": {"label": "vague"},
    "inform": {"ratings": [5, 1, 3]},
    "outcome": {"label": "uncertain"},
    "checklist": {"labels": ["missing", "consistent", "contradictory"]},
    "reasoning": {"label": "good"},
    "prefer": {"label": "tie"},
    "outline": {
        "structure": "cause and effect",
        "points": [{"text": "A is B", "passage": 2}, {"text": "B is C", "passage": 1}],
    },
    "expand": {"answer": "A is B [2]. So B is C [1]."},
}


def value(task: str) -> Any:
    return (
        VALID[task]
        if task in ("extract", "single_pass", "outline")
        else next(iter(VALID[task].values()))
    )


def kind(task: str, text: str, count: int | None = None, **form: Any) -> str:
    found = read(task, text, count, **form)
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
    ("INCORRECT - a wrong date", "not_json"),
    ("[1] The materials say so. Supported", "extra_text"),
    ("", "empty"),
    ("null", "type"),
    ('"correct"', "type"),
    ("{}", "keys"),
    ('{"Label": "correct"}', "keys"),
    ('{"label": "correct", "reason": "because"}', "keys"),
    ('{"label": "correct", "label": "wrong"}', "keys"),
    ('{"label": ["correct"]}', "type"),
    ('{"label": 1}', "type"),
    ('{"label": NaN}', "not_json"),
    ('{"label": "correct"} {"label": "wrong"}', "extra_text"),
    ('{"label": "correct"}\n\nThe claim is wrong.', "extra_text"),
    ('Well. <think>wrong?</think>{"label": "correct"}', "extra_text"),
    ("<think>wrong?</think>", "empty"),
    ('<think>{"label": "correct"}', "extra_text"),  # cut in its thoughts
    ('<think>it says </think>{"label": "correct"} so no</think>{"label": "wrong"}', "extra_text"),
    (
        '<think>no</think>{"label": "wrong"}, since it says </think>{"label": "correct"}',
        "extra_text",
    ),
    ('<think>a</think><think>b</think>{"label": "correct"}', "extra_text"),
    ('<think>a</think>So: {"label": "correct"}', "extra_text"),
    ('</think>{"label": "correct"}', "extra_text"),
    ('```json\n{"label": "correct"}\n```\nbut in truth wrong', "extra_text"),
    ('```json\n{"label": "correct"}\n```\n```json\n{"label": "wrong"}\n```', "extra_text"),
    ("```json\n```", "not_json"),
    ('```python\n{"label": "correct"}\n```', "extra_text"),
    ('{"label": "correct"', "not_json"),
    ("{'label': 'correct'}", "not_json"),
    ('\ufeff{"label": "correct"}', "extra_text"),
    ('{"label": "correct\x00"}', "not_json"),
    ('{"label": "correct\\u0000"}', "label"),
    ('{"label": "сorrect"}', "label"),  # a Cyrillic letter
    ('{"lab\udc80el": "correct"}', "keys"),
    ('{"label": ' * 50_000, "too_long"),
    ("[" * 150_000, "not_json"),
    ('{"label": "' + "correct " * 20_000 + '"}', "label"),
]


@pytest.mark.parametrize(("text", "expected"), NO_VERDICTS, ids=lambda part: ascii(part[:24]))
def test_what_only_looks_like_a_verdict(text: str, expected: str) -> None:
    assert kind("verify", text) == expected
    for task in TASKS:
        kind(task, text)


@pytest.mark.parametrize("filler", ["```json\n", "{", " ", '{"a":', "\\", "\n"])
def test_the_longest_that_is_parsed_takes_no_time(filler: str) -> None:
    """A quadratic step would not come to an end."""
    text = filler * (199_000 // len(filler))
    assert kind("verify", text + filler * 2_000) == "too_long"
    for line in ("json", "line"):
        for form in (f"```json\n{text}", f"LABEL: {text}"):
            kind("verify", form, form=line)


@pytest.mark.parametrize("task", ["inform", "checklist"])
def test_lists_have_the_declared_length(task: str) -> None:
    text = json.dumps(VALID[task])
    assert read(task, text, 3) == value(task)
    assert kind(task, text, 2) == kind(task, text, 4) == kind(task, text, 0) == "length"


POINT = {"text": "A is B", "passage": 2}


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], "length"),
        ([POINT] * 6, "length"),
        (POINT, "type"),
        (["A is B [2]"], "type"),
        ([{**POINT, "why": "x"}], "keys"),
        ([{**POINT, "text": " … "}], "blank"),
        ([{**POINT, "passage": 0}], "label"),
        ([{**POINT, "passage": 4}], "label"),
        ([{**POINT, "passage": "2"}], "type"),
        ([{**POINT, "passage": True}], "type"),
        ([{**POINT, "passage": 2.0}], "type"),
    ],
)
def test_points_name_one_passage_each_that_is_there(points: Any, expected: str) -> None:
    text = json.dumps({"structure": "parallel", "points": points})
    assert kind("outline", text, 3) == expected
    assert (
        read("outline", json.dumps({"structure": "Parallel", "points": [POINT]}), 2)["structure"]
        == "parallel"
    )
    for structure, why in (
        ("mixed", "label"),
        ("", "label"),
        (["parallel"], "type"),
    ):
        assert kind("outline", json.dumps({"structure": structure, "points": [POINT]}), 3) == why


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
def test_what_would_be_read_back_otherwise_is_no_part_of_a_plan(text: str) -> None:
    plan = {
        "structure": "parallel",
        "points": [{"text": text, "passage": 1}, {"text": "Ada", "passage": 1}],
    }
    assert kind("outline", json.dumps(plan)) == "form"
    if "2." not in text:  # the number of a point is no mark in an answer
        assert kind("expand", json.dumps({"answer": text})) == "form"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", "blank"),
        (None, "type"),
        ("A [4].", "label"),
        ("A [1, 9].", "label"),
        ("A [2-4].", "label"),
        ("A, in [2019].", "label"),
        ("A\ud800 [1].", "characters"),
    ],
)
def test_an_answer_cites_passages_that_are_there(answer: Any, expected: str) -> None:
    assert kind("expand", json.dumps({"answer": answer}), 3) == expected
    assert (
        read("expand", '{"answer": "A [3], in 2019 [1, 2] and a[i] [1-3]."}', 3)
        == "A [3], in 2019 [1, 2] and a[i] [1-3]."
    )


@pytest.mark.parametrize(
    ("rating", "expected"),
    [
        (0, "label"),
        (6, "label"),
        (True, "type"),
        (3.0, "type"),
        ("3", "type"),
        (None, "type"),
    ],
)
def test_ratings_are_whole_numbers_from_one_to_five(rating: Any, expected: str) -> None:
    assert kind("inform", json.dumps({"ratings": [1, rating]}), 2) == expected
    claim = {"text": "c", "label": "vague", "informativeness": rating}
    assert (
        kind("single_pass", json.dumps({"sentences": [{"text": "s", "claims": [claim]}]}))
        == expected
    )


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        ({}, "type"),
        ([1], "type"),
        ([{"text": "A."}], "keys"),
        ([{"text": "A.", "claims": [], "n": 1}], "keys"),
        ([{"text": "A.", "claims": "a"}], "type"),
        ([{"text": "A.", "claims": [1]}], "type"),
        ([{"text": "A.", "claims": ["…"]}], "blank"),
        ([{"text": " ", "claims": []}], "blank"),
        ([{"text": "A\ud800.", "claims": []}], "characters"),
        ([{"text": "A.", "claims": [{"text": "a"}]}], None),
    ],
)
def test_sentences_have_exactly_the_declared_fields(sentences: Any, expected: str | None) -> None:
    text = json.dumps({"sentences": sentences})
    assert kind("extract", text) == (expected or "type")
    assert kind("single_pass", text) in (expected or "keys", "type")


@given(st.sampled_from(sorted(TASKS)), st.data())
def test_a_reply_cut_anywhere_is_a_failure(task: str, data: st.DataObject) -> None:
    text = json.dumps(VALID[task])
    kind(task, text[: data.draw(st.integers(0, len(text) - 1))])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["correct", "label", "text", "missing", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["label", "labels", "ratings", "sentences"]), inner)
    ),
)


@given(st.sampled_from(LABELLED), json_values)
def test_any_json_is_a_failure_or_the_label_that_it_is(task: str, reply: Any) -> None:
    found = read(task, json.dumps(reply))
    if not isinstance(found, Failure):
        assert reply == {"label": found} and found in LABELS[task]


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        ("verify", "LABEL: correct", "correct"),
        ("verify", " label:Wrong\n", "wrong"),
        ("outcome", "LABEL: INCORRECT", "incorrect"),
        ("inform", "RATINGS: 5, 3,1", [5, 3, 1]),
        (
            "checklist",
            "LABELS: missing, Consistent, contradictory",
            ["missing", "consistent", "contradictory"],
        ),
    ],
)
def test_the_line_form(task: str, text: str, expected: Any) -> None:
    assert read(task, text, 3 if isinstance(expected, list) else None, form="line") == expected


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        ("verify", "correct", "not_line"),
        ("verify", "LABEL: correct\nLABEL: wrong", "not_line"),
        ("verify", "The LABEL: correct", "not_line"),
        ("verify", "LABEL: ", "label"),
        ("verify", "LABEL: INCORRECT - a wrong date", "label"),
        ("verify", "LABELS: correct", "not_line"),
        ("inform", "RATINGS: 5, 3", "length"),
        ("inform", "RATINGS: 5, 3, ", "type"),
        ("inform", "RATINGS: 5, 3, 6", "label"),
        ("inform", "RATINGS: 5, 3, １", "type"),
        ("checklist", "LABELS: missing, missing", "length"),
    ],
)
def test_the_line_form_is_as_strict(task: str, text: str, expected: str) -> None:
    assert kind(task, text, 3 if task != "verify" else None, form="line") == expected
