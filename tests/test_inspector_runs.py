"""Runs in the inspector: their settings, missing rewards, and a trainer's logged numbers."""

import json
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import examples, write_json
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from tests.test_inspector import record
from workbench.experiments.claims_table import without_formula
from workbench.inspector.curves import curve_data, run_list
from workbench.inspector.examples import worked_example
from workbench.inspector.inspect_tab import step_row
from workbench.inspector.listing import Query, order_choices, own_method, query_of, rollouts
from workbench.inspector.opened import open_row, show
from workbench.inspector.runs import Runs
from workbench.inspector.runs_tab import server_functions
from workbench.inspector.same_prompt import compared, difference, same_prompt
from workbench.inspector.token_view import as_json
from workbench.inspector.what_if import what_if
from workbench.methods import METHODS
from workbench.runs.folder import lock
from workbench.runs.steps import reward_columns
from workbench.runs.store import append_feedback
from workbench.scoring.imports import import_completions
from workbench.types import Feedback, JsonObject, Question, Response, Reward, Verdict

OUTCOMES = (("correct", 1.0), ("uncertain", 0.0), ("incorrect", -1.0))


def record_logged(folder: Path) -> Path:
    """Write two steps of two prompts with two completions each, in TRL's format; the second step
    has twice the accuracy.
    """
    rows = [
        {
            "step": step,
            "prompt": prompt,
            "completion": f"{prompt} {'So ' * sample}",
            "advantage": 0.0,
        }
        | {"accuracy": float(step * sample), "format": 0.5, "completion_length": 10 * step}
        for step in (1, 2)
        for prompt in ("Who?", "Where?")
        for sample in (0, 1)
    ]
    folder.mkdir(parents=True)
    import_completions("trl", write(folder / "logged.log", rows), folder / "rollouts.jsonl")
    return folder


def record_untagged(folder: Path, method: str = "truthrl") -> None:
    """Write rows without tags and with only an outcome, as a run of TruthRL stores them."""
    rows = []
    for number, (label, value) in enumerate(OUTCOMES):
        response = replace(
            worked_example().response,
            id=f"r{number}",
            text=f"It was opened in {1930 + number}.",
            offsets=((0, 3),),
        )
        verdicts = (Verdict("outcome", "answer", label),)
        rows.append(Feedback(response, verdicts=verdicts, rewards={method: Reward(value)}))
    append_feedback(folder, rows)


def test_a_method_without_its_checks_has_no_reward(tmp_path: Path) -> None:
    """KLCF gives −1 for missing tags. Without a check of the answer this is not a reward."""
    record_untagged(tmp_path / "run")
    opened = open_row(Runs(tmp_path), "run", "r0")
    klcf = opened.feedback.rewards["klcf"]
    assert klcf.value is None and klcf.error is not None
    missing = "the truth of its claims and the facts of a checklist"
    assert klcf.error.message == f"KLCF cannot score this answer: it was not checked for {missing}"
    found = listed(tmp_path, order="disagreement")
    assert found["methods"] == ["truthrl"]
    assert found["scored"]["klcf"] == [0, 3]
    assert found["scored"]["truthrl"] == [3, 3]
    assert set(found["unscored"]) == {"rlfh", "forag", "klcf", "knowrl", "binary_rar"}
    assert "was not checked for" in found["unscored"]["klcf"]
    # one method alone does not disagree
    assert [row["disagreement"] for row in found["rows"]] == [None] * 3
    key = json.loads(show(opened))["key"]
    again = what_if({"key": key})["view"]["methods"]
    assert again["klcf"]["value"] is None and again["truthrl"]["value"] == 1.0
    # Without the terms that need verdicts, only the format is scored; a stored reward is kept.
    form = what_if({"key": key, "settings": {"klcf": {"w_check": 0}}})["view"]["methods"]["klcf"]
    assert form["value"] is None and "the truth of its claims" in form["error"]["message"]
    record_untagged(tmp_path / "asked", "klcf")
    assert open_row(Runs(tmp_path), "asked", "r2").feedback.rewards["klcf"].value == -1.0


def test_logged_numbers_are_not_a_method(tmp_path: Path) -> None:
    record_logged(tmp_path / "run")
    runs = Runs(tmp_path)
    assert own_method(runs, "run") == ""
    assert order_choices("")[0][0] == "Logged reward, lowest first"
    found = listed(tmp_path, step=2, order="highest")
    assert found["methods"] == [] and found["logged"] == ["trl:accuracy", "trl:format"]
    # sorted by accuracy + format
    assert [row["values"]["trl:accuracy"] for row in found["rows"]] == [2, 2, 0, 0]
    assert [row["disagreement"] for row in found["rows"]] == [None] * 4
    opened = open_row(runs, "run", found["rows"][0]["id"])
    data = opened.data()
    assert list(data["methods"]) == list(METHODS) and data["method"] == "rlfh"
    assert data["logged"] == {"trl:accuracy": 2.0, "trl:format": 0.5}
    assert all(method["value"] is None for method in data["methods"].values())
    assert "error" not in what_if({"key": json.loads(show(opened))["key"]})


def listed(root: Path, run: str = "run", **query: Any) -> JsonObject:
    return json.loads(rollouts(Runs(root), run, query_of(query)))


def curves(folder: Path, name: str) -> JsonObject:
    found = json.loads(curve_data(Runs(folder), [name]))
    return {one["title"]: found["runs"][0]["series"][one["name"]] for one in found["series"]}


def test_an_imported_run_has_curves(tmp_path: Path) -> None:
    """By hand: accuracy 0 and `step` in each group, format ½; so the mean reward is step/2 + ½,
    a group's spread step/√2.
    """
    record_logged(tmp_path / "run")
    drawn = curves(tmp_path, "run")
    assert drawn["Reward"] == [1.0, 1.5]
    assert drawn["Spread of the reward in a group"] == pytest.approx([0.5**0.5, 2**0.5])
    assert drawn["Logged, accuracy"] == [0.5, 1.0] and drawn["Logged, format"] == [0.5, 0.5]
    assert drawn["Rows not scored"] == [0, 0] and drawn["Accuracy"] == drawn["Cut off"] == [
        None,
        None,
    ]
    assert drawn["Length, tokens"] == [1.5, 1.5]  # words: "Who?" with zero or one "So"


def record_queried(folder: Path) -> Path:
    """Write two steps of four rows on two questions of two tiers, with rewards 0 to 7."""
    rows = []
    for number, value in enumerate((3, 1, 7, 0, 4, 6, 2, 5)):
        asked, kind, tier = (
            ("Who built it?", "single", "known"),
            ("Wo liegt ES?", "list", "half"),
        )[number % 2]
        question = Question(f"q{number % 2}", asked, kind=kind, meta={"tier": tier})
        text = f"Answer {number}" + " <b>ÄRGER</b>" * (number == 5)
        response = Response(f"r{number}", question, text, step=1 + number // 4, offsets=((0, 6),))
        verdicts = (Verdict("outcome", "answer", OUTCOMES[number % 3][0]),)
        rewards = {"truthrl": Reward(value, {"form": float(number)})}
        rows.append(Feedback(response, verdicts=verdicts, rewards=rewards))
    append_feedback(folder, rows)
    return folder


def ids(root: Path, **query: Any) -> list[str]:
    return [row["id"] for row in listed(root, **query).get("rows", [])]


def test_rollouts_are_selected_by_every_filter(tmp_path: Path) -> None:
    record_queried(tmp_path / "run")
    # all steps, sorted by reward
    assert ids(tmp_path) == "r3 r1 r6 r0 r4 r7 r5 r2".split()
    assert ids(tmp_path, step=2, order="highest") == ["r5", "r7", "r4", "r6"]
    # the question's text, ignoring case
    assert ids(tmp_path, text="es?") == ["r3", "r1", "r7", "r5"]
    assert ids(tmp_path, text="<B>ärger") == ["r5"]
    assert ids(tmp_path, outcome="incorrect") == ["r5", "r2"]
    assert ids(tmp_path, outcome="none") == []
    assert ids(tmp_path, tier="half", kind="list", step=1) == ["r3", "r1"]
    assert ids(tmp_path, tier="known", kind="list") == []
    assert ids(tmp_path, low=5.5) == ["r5", "r2"] and ids(tmp_path, low=2, high=3) == ["r6", "r0"]
    assert ids(tmp_path, of="part:form", high=1) == ["r1", "r0"]
    assert ids(tmp_path, of="part:none", high=1) == []
    found = listed(tmp_path, text="nowhere")
    assert found["note"] == "No rollout matches." and found["choices"]["tiers"] == ["half", "known"]
    assert found["choices"]["steps"] == [1, 2] and found["choices"]["parts"] == ["part:form"]


def test_rows_without_a_value_are_left_out_only_by_a_bound(tmp_path: Path) -> None:
    folder = record_queried(tmp_path / "run")
    row = Runs(tmp_path).feedback("run", 0)
    failed = replace(row, response=replace(row.response, id="none"))
    append_feedback(folder, [replace(failed, rewards={"truthrl": Reward(None)})])
    assert len(ids(tmp_path)) == 9 and ids(tmp_path)[-1] == "none"
    assert ids(tmp_path, of="part:form") == ids(tmp_path, of="part:other") == ids(tmp_path)
    for of in ("", "part:form"):
        assert "none" not in ids(tmp_path, of=of, low=-9) + ids(tmp_path, of=of, high=9)
    assert "that match" not in listed(tmp_path, of="part:form")["note"]


ASKED = (
    {"step": "1", "low": "x", "start": -5, "order": "<b>"},
    {"step": True, "text": 3, "high": float("nan")},
)


@pytest.mark.parametrize("request_", ASKED)
def test_a_malformed_query_selects_everything(request_: JsonObject) -> None:
    assert query_of(request_) == Query()


def test_pages_cover_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_queried(tmp_path / "run")
    monkeypatch.setattr("workbench.inspector.listing.PAGE", 3)
    assert [ids(tmp_path, start=start) for start in (0, 3, 6)] == [
        ["r3", "r1", "r6"],
        ["r0", "r4", "r7"],
        ["r5", "r2"],
    ]
    page = listed(tmp_path, start=3)
    assert (page["count"], page["page"]) == (8, 3) and page["note"].startswith(
        "8 rollouts; 4 to 6 in this order are listed"
    )


def test_next_and_previous_follow_the_list(tmp_path: Path) -> None:
    record_queried(tmp_path / "run")
    runs, came = Runs(tmp_path), {"run": "run", "query": {"order": "highest", "tier": "half"}}
    place, seen = 6.0, []  # row 6 is r5, the best of its tier
    for _ in range(3):
        place, view, note = step_row(runs, 1, "run", place, came)
        seen.append((json.loads(view)["id"], json.loads(note)["note"]))
    assert [name for name, _ in seen] == ["r7", "r1", "r3"]
    assert seen[0][1].startswith("2 of 4 in the list")
    assert "end of the list" in step_row(runs, 1, "run", place, came)[2]
    assert step_row(runs, -1, "run", place, came)[0] == 2
    for other in (None, {"run": "other"}):  # in file order
        assert json.loads(step_row(runs, 1, "run", 1, other)[1])["id"] == "r1"


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    record_queried(tmp_path / "run")
    for age, name in ((30, "old"), (20, "seed")):
        record_queried(tmp_path / name)
        write_json(
            tmp_path / name / "config.json", {"method": "truthrl", "seed": age, "config": {}}
        )
        lines = [{"step": step, "reward": (0.5, 0.75, 0.25)[step - 1]} for step in (1, 2, 3)]
        write(tmp_path / name / "metrics.jsonl", lines)
        os.utime(tmp_path / name / "rollouts.jsonl", (age, 2000 - age))
    greedy = {"truthfulness": {"value": 0.5}}
    write_json(tmp_path / "seed" / "summary.json", {"status": "done", "after": {"greedy": greedy}})
    (tmp_path / "old" / "config.json").write_text("[1]")
    page = run_list(Runs(tmp_path))
    assert [run["name"] for run in page] == [
        "run",
        "seed",
        "old",
    ] and "config.json is damaged" in page[2]["broken"]
    keys = ("method", "seed", "status", "steps", "last", "evaluation")
    # the evaluation, not the step with the highest reward
    evaluation = {"metric": "truthfulness", "before": None, "after": 0.5}
    assert [page[1][key] for key in keys] == ["truthrl", 20, "done", 3, 0.25, evaluation]
    # Mean rewards of the other run: (3 + 1 + 7 + 0) / 4 and (4 + 6 + 2 + 5) / 4.
    assert [page[0][key] for key in keys] == ["truthrl", None, "recorded", 2, 4.25, None]


def test_a_running_training_is_marked_and_updated(tmp_path: Path) -> None:
    folder, runs = record_queried(tmp_path / "run"), Runs(tmp_path)
    (folder / "config.json").write_text('{"method": "truthrl"}')
    assert run_list(runs)[0]["status"] == "unfinished"
    [function] = [one for one in server_functions(runs) if one.__name__ == "look"]

    def look(stamp: str | None = None) -> Any:
        return function({"names": ["run"], "stamp": stamp})

    with lock(folder):
        first = look()
        assert json.loads(first["runs"])[0]["status"] == "running"
        assert look(first["stamp"]) == {"same": True}
    # like after a kill: no status is written
    assert json.loads(look(first["stamp"])["runs"])[0]["status"] == "unfinished"
    first = look()
    assert look(first["stamp"]) == {"same": True}
    late = worked_example()
    response = replace(late.response, id="late", step=3)
    append_feedback(folder, [replace(late, response=response, rewards={"truthrl": Reward(1.0)})])
    grown = look(first["stamp"])
    assert json.loads(grown["curves"])["runs"][0]["steps"] == [1, 2, 3]
    assert json.loads(grown["runs"])[0]["steps"] == 3


@given(st.text(alphabet=st.sampled_from('=+-@ok"\t\r\n\u2028 ,1'), max_size=12))
def test_no_part_of_a_cell_is_a_formula(text: str) -> None:
    out = str(without_formula(text))
    assert "\r" not in out
    pieces = [piece for line in out.splitlines() for piece in line.split("\t")]
    assert not any(piece.startswith(tuple("=+-@")) for piece in pieces)
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    assert re.sub(r"'(?=[=+\-@])", "", out) == plain


def test_a_wrong_index_shows_no_row(tmp_path: Path) -> None:
    runs = Runs(record_queried(tmp_path / "run").parent)
    runs.rows("run").table.loc[0, "id"] = "r1"
    with raises_error("does not match this row"):
        runs.feedback("run", 0)


def test_two_texts_are_compared_word_by_word() -> None:
    by, pieces = difference(
        "The bridge was  opened in 1934.", "The old bridge was\nopened in 1931 ."
    )
    assert by == "words" and pieces == [
        (True, "The", "The"),
        (False, "", " old"),
        (True, " bridge was  opened in", " bridge was\nopened in"),
        (False, " 1934", " 1931"),
        (True, ".", " ."),
    ]
    # scripts without spaces between words
    assert difference("河边住着他。", "河边住着她。")[1][1] == (False, "他", "她")
    assert difference("", "") == ("words", []) and difference("", "a") == (
        "words",
        [(False, "", "a")],
    )


LONG = (
    (" ".join(f"x a{n}" for n in range(4000)), " ".join(f"x b{n}" for n in range(4000))),
    (". " * 20_000, ". " * 20_001),
    ("word. " * 40_000, "word. " * 39_999 + "other. "),
    (" \n" * 50_000, ""),
)


@pytest.mark.parametrize("pair", LONG)
def test_comparing_long_texts_keeps_all_text(pair: tuple[str, str]) -> None:
    _, pieces = difference(*pair)
    assert tuple("".join(column) for column in list(zip(*pieces, strict=True))[1:]) == pair


def test_the_same_prompt_is_found_in_other_steps_and_runs(tmp_path: Path) -> None:
    record(tmp_path / "one")
    row = worked_example()
    question = replace(row.response.question, id="elsewhere")
    text = f"{row.response.text}\ud800"
    answer = replace(row.response, id="e/1", question=question, group="g", step=None, text=text)
    other = Question("tarven", "Another question of the same id?")
    unrelated = replace(row.response, id="s/1", question=other, group="h", step=1)
    append_feedback(tmp_path / "two", [replace(row, response=one) for one in (answer, unrelated)])
    record_queried(tmp_path / "none")
    runs = Runs(tmp_path)
    with_query = partial(compared, runs, "one", "tarven/1/0")
    page = with_query({})
    assert (page["steps"], page["step"]) == ([1, 2, 3], 3)
    assert (page["first"]["id"], page["second"]["id"]) == ("tarven/1/0", "tarven/3/0")
    assert [same for same, _, _ in page["pieces"]] == [True] and page["by"] == "words"
    # Rewards 1.66, 2.66, 4.16, 4.66: the first deviates by −1.625; the std is 1.377.
    first = page["first"]["group"][0]
    assert first["open"] and first["advantages"]["rlfh"]["group"] == pytest.approx(
        -1.625 / 1.3770, abs=1e-3
    )
    for step, key in ((1, "tarven/1/1"), (2, "tarven/2/3")):  # not the row itself
        assert with_query({"step": step, "id": key})["second"]["id"] == key
    assert with_query({"run": "../two", "step": {}, "id": 7})["second"]["id"] == "tarven/3/0"
    elsewhere = with_query({"run": "two"})
    # matched by text, not by id
    assert (elsewhere["steps"], elsewhere["second"]["id"]) == ([None], "e/1")
    assert elsewhere["pieces"][-1][2].endswith("\ufffd") and json.loads(as_json(elsewhere))
    missing = with_query({"run": "none"})
    assert missing["second"] is None
    assert missing["note"] == "Run 'none' has no other answer to this prompt."
    served = same_prompt(runs)
    assert "no row" in served({"run": "one", "id": "nobody"})["error"]
    assert "cannot be read" in served({"id": 1})["error"] and "error" in served([])


@pytest.mark.parametrize(("columns", "summed"), examples("logged_columns"))
def test_the_sum_of_logged_columns_is_the_reward(columns: str, summed: str) -> None:
    assert reward_columns(columns.split()) == summed.split()
