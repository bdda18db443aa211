"""Any row is scored or reported; it never stops the other rows."""

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.score_helpers import read, write
from workbench.scoring import Options, score_file
from workbench.scoring.rows import Malformed, Reader, parse
from workbench.types import Claim, JsonObject, Passage, Question

ERROR = {"stage": "judge", "kind": "timeout", "message": "m", "raw": ""}
FULL: JsonObject = json.loads("""{
  "schema": 1, "id": "a", "question_id": "q", "question": "Who?", "group": "g", "sample": 0,
  "step": 3, "finish": "stop", "response": "<think>Ada sings.</think>Ada paints.",
  "answers": ["Ada"], "title": "Ada", "passages": ["p", {"text": "t"}],
  "checklist": ["Ada paints."], "kind": "single", "sentences": [[7, 17], [25, 36]],
  "tokens": {"source": "sampled", "ids": [1, 2], "offsets": [[0, 9], [9, 36]],
    "logprobs": [-1.0, -0.5]},
  "claims": [{"id": 0, "text": "Ada paints", "section": "body", "sentence": 1, "span": [25, 35],
    "end": 35, "coverage": 1.0}],
  "verdicts": [
    {"target": "claim:0", "aspect": "fact", "label": "correct", "p": 0.9, "informativeness": 4,
     "evidence": [{"passage": "p", "span": [0, 1]}], "by": "x", "error": null},
    {"target": "outcome", "aspect": "answer", "label": null,
     "error": {"stage": "judge", "kind": "timeout", "message": "m", "raw": ""}}],
  "rewards": {"old": {"value": 1.0, "parts": {"a": 1.0}, "tokens": [1.0, 0.0], "unplaced": [],
    "events": [{"part": "a", "value": 1.0, "end": 4}], "error": null}},
  "error": null, "cost": {"calls": 1, "seconds": 0.5}
}""")
SHORT, GOOD = examples("short_rows")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["claim:0", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "label", "id", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a row, at every depth."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [place for key, item in inner for place in [(*path, key), *places(item, (*path, key))]]


@st.composite
def damaged(draw: st.DrawFn) -> JsonObject:
    """A row with one or two values replaced or deleted."""
    row = copy.deepcopy(draw(st.sampled_from([FULL, SHORT])))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(places(row)))
        holder = row
        for key in path:
            holder = holder[key]
        if draw(st.booleans()):
            holder[last] = draw(JSON)
        else:
            del holder[last]
        if not row:
            break
    return row


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(damaged(), min_size=1, max_size=6))
def test_a_damaged_row_is_scored_or_reported_without_effect_on_others(
    rows: list[JsonObject],
) -> None:
    named = [
        {**row, "id": f"row{number}"} if "id" in row and row["id"] == "a" else row
        for number, row in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as name:
        source = write(Path(name) / "in.jsonl", [*named, GOOD])
        summary = score_file(
            Options(source, Path(name) / "out.jsonl", judge="world", max_failed=1.0)
        )
        stored = read(Path(name) / "out.jsonl")
        assert summary["rows"] + summary["malformed"] == len(named) + 1
        assert len(stored) == summary["rows"]
        [good] = [row for row in stored if row["id"] == "good"]
        assert good["rewards"]["truthrl"]["value"] == 0.0
        again = score_file(Options(source, Path(name) / "out.jsonl", judge="world", max_failed=1.0))
        assert again["rows"] == summary["rows"]


@pytest.mark.parametrize("questions", [{}, {"q": Question("q", "Who?")}])
def test_a_field_of_a_wrong_form_is_reported_even_if_the_question_is_stored(
    questions: dict[str, Question],
) -> None:
    row = {key: value for key, value in FULL.items() if key != "question"} | {"passages": [7]}
    with pytest.raises(Malformed, match="a passage must be"):
        parse(row, {}, questions)


def test_a_full_row_is_read_unchanged() -> None:
    item = parse(FULL, {}, {})
    stored = json.loads(json.dumps(item.feedback.to_row()))
    assert item.replay
    for name in "id group sample step response finish sentences claims error".split():
        assert stored[name] == FULL[name]
    assert stored["rewards"]["old"]["events"][0]["end"] == 4
    assert stored["tokens"]["ids"] == [1, 2]
    assert item.response.question.passages[0] == Passage(
        item.response.question.passages[0].id, "", "p"
    )


def test_claims_without_spans_are_found_in_their_sections() -> None:
    row = {
        "id": 1,
        "response": FULL["response"],
        "claims": [{"text": "Ada sings"}, {"text": "Ada paints"}, {"text": "zzz"}],
    }
    claims = parse({**row, "verdicts": []}, {}, {}).feedback.claims
    assert [(claim.section, claim.sentence, claim.span) for claim in claims[:2]] == [
        ("think", 0, (7, 16)),
        ("body", 1, (25, 35)),
    ]
    assert claims[2] == Claim(2, "zzz", coverage=0.0)


@pytest.mark.parametrize("claims", examples("given_claims"))
def test_claims_without_labels_are_to_be_verified(claims: Any) -> None:
    """Also in the formats of VeriScore, SAFE and FActScore."""
    row = {"id": 1, "question": "Who?", "response": FULL["response"], "claims": claims}
    item = parse(row, {}, {})
    assert not item.replay and item.response.given_claims
    assert [claim.text for claim in item.response.given_claims] == ["Ada sings", "Ada paints"]


@pytest.mark.parametrize("changed", examples("unreadable_rows"))
def test_a_row_that_cannot_be_read_is_named_by_its_id(changed: JsonObject) -> None:
    with pytest.raises(Malformed, match="id 'mine'"):
        parse({"id": "mine", "question": "Who?", "response": "Ada.", **changed}, {}, {})


def test_a_row_nested_too_deeply_is_named() -> None:
    claims: list[Any] = ["Ada"]
    for _ in range(3000):
        claims = [claims]
    row = {"id": "mine", "question": "Who?", "response": "Ada.", "claims": claims}
    with pytest.raises(Malformed, match="id 'mine': the row is nested too deeply"):
        parse(row, {}, {})


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Who?", "response": "\ud800.", "passages": ["\udfff x", "-"]}
    reader = Reader(write(tmp_path / "in.jsonl", [row]))
    [item] = reader.items(reader.survey().ids)
    [passage] = item.response.question.passages  # "-" is not evidence
    for text in (item.response.text, passage.text):
        assert text.encode() and "\ufffd" in text


def test_another_schema_field_does_not_mean_a_feedback_row() -> None:
    assert not parse(
        {"id": "a", "question": "Who?", "response": "Ada.", "schema": "people"}, {}, {}
    ).replay


def test_a_logged_row_without_verdicts_is_judged() -> None:
    logged = {**FULL, "claims": [], "verdicts": [], "sentences": []}
    assert not parse(logged, {}, {}).replay
    assert set(parse(logged, {}, {}).feedback.rewards) == {"old"}
    assert parse({**logged, "sentences": [[0, 4]]}, {}, {}).replay  # judged, without claims
    assert parse({**logged, "error": ERROR}, {}, {}).replay  # judged, but failed
    # explicitly without claims
    assert parse({"id": 1, "response": "x", "claims": [], "verdicts": []}, {}, {}).replay


def test_columns_have_other_names_and_tables_have_gaps() -> None:
    row = {"key": 3.0, "q": "Who?", "output": "Ada.", "k": 2.0, "step": None}
    item = parse(row, {"id": "key", "question": "q", "response": "output", "sample": "k"}, {})
    assert (item.response.id, item.response.sample, item.response.step, item.response.text) == (
        "3",
        2,
        None,
        "Ada.",
    )


@pytest.mark.parametrize(
    ("changed", "labels"),
    [
        ({"label": "wrong"}, "label correct and wrong"),
        ({"label": None, "error": ERROR}, "label correct and None"),
    ],
)
def test_contradicting_verdicts_are_reported(changed: JsonObject, labels: str) -> None:
    row = copy.deepcopy(FULL)
    row["verdicts"].append(dict(row["verdicts"][0]))
    # equal verdicts are accepted
    assert parse(row, {}, {}).feedback.verdicts[0] == parse(row, {}, {}).feedback.verdicts[2]
    row["verdicts"][2] |= changed
    with pytest.raises(
        Malformed, match=f"two verdicts on 'claim:0' .aspect fact. differ: {labels}"
    ):
        parse(row, {}, {})
    row["verdicts"][2]["aspect"] = "truth"  # another check may differ
    assert parse(row, {}, {})


def test_duplicate_keys_are_reported(tmp_path: Path) -> None:
    twice = (
        '{"id": "twice", "response": "Ada paints.", "claims": [], "outcome": "correct", "outcome":'
        ' "incorrect"}'
    )
    deep = (
        '{"id": "deep", "response": "Ada paints.", "claims": [{"text": "Ada paints", "label":'
        ' "wrong", "label": "correct"}]}'
    )
    source = write(tmp_path / "in.jsonl", [twice, deep, GOOD])
    summary = score_file(Options(source, tmp_path / "f.jsonl", method="truthrl", max_failed=1))
    assert [problem["line"] for problem in summary["problems"]] == [1, 2] and summary["rows"] == 1
    assert "the key 'outcome' occurs twice" in summary["problems"][0]["problem"]
    assert "the key 'label' occurs twice" in summary["problems"][1]["problem"]
