"""What the inspector makes of a run: the settings it was scored with, what nobody paid, and what a trainer logged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.score_helpers import write
from tests.test_score import SAID
from workbench.examples import worked_example
from workbench.inspector.opened import configs_of, open_row, paid, show
from workbench.inspector.rollouts import order_choices, own_method, rollouts
from workbench.inspector.runs import Runs
from workbench.inspector.runs_tab import curve_data
from workbench.inspector.series import reward_columns
from workbench.inspector.what_if import what_if
from workbench.recipes import METHODS, method_configs
from workbench.score import Options, score_file
from workbench.score.imports import import_completions
from workbench.store import append_feedback
from workbench.types import Feedback, Reward, Verdict, WorkbenchError

OUTCOMES = (("correct", 1.0), ("uncertain", 0.0), ("incorrect", -1.0))


def record_logged(folder: Path) -> Path:
    """Two steps of two prompts with two completions each, as TRL logs them; the second step is twice as good."""
    rows = [
        {"step": step, "prompt": prompt, "completion": f"{prompt} {'So ' * sample}", "advantage": 0.0}
        | {"accuracy": float(step * sample), "format": 0.5, "completion_length": 10 * step}
        for step in (1, 2)
        for prompt in ("Who?", "Where?")
        for sample in (0, 1)
    ]
    folder.mkdir(parents=True)
    import_completions("trl", write(folder / "logged.log", rows), folder / "rollouts.jsonl")
    return folder


def record_untagged(folder: Path, method: str = "truthrl") -> None:
    """Rows without tags and with an outcome alone, as a run of TruthRL keeps them."""
    rows = []
    for number, (label, value) in enumerate(OUTCOMES):
        response = replace(
            worked_example().response, id=f"r{number}", text=f"It was opened in {1930 + number}.", offsets=((0, 3),)
        )
        verdicts = (Verdict("outcome", "answer", label),)
        rows.append(Feedback(response, verdicts=verdicts, rewards={method: Reward(value)}))
    append_feedback(folder, rows)


def test_what_if_starts_from_the_settings_that_the_run_was_scored_with(tmp_path: Path) -> None:
    chosen = Options(write(tmp_path / "in.jsonl", [SAID]), tmp_path / "run" / "rollouts.jsonl", "rlfh")
    score_file(replace(chosen, overrides=["rlfh.alpha=2", "rlfh.clip=none"]))
    runs = Runs(tmp_path)
    assert configs_of(runs, "run")["rlfh"].alpha == 2 and configs_of(runs, "run")["klcf"] == method_configs()["klcf"]
    opened = open_row(runs, "run", "a")
    stored = opened.feedback.rewards["rlfh"].value
    found = what_if({"key": json.loads(show(opened))["key"]})
    assert found["view"]["methods"]["rlfh"]["value"] == stored  # nothing was changed yet
    assert next(one["value"] for one in found["controls"]["rlfh"] if one["name"] == "alpha") == 2
    assert found["line"] == "--set rlfh.alpha=2"


@pytest.mark.parametrize(
    "text", ["[1]", '{"config": 3}', '{"config": {"rlfh": [1], "none": {"alpha": 3}}}', '{"config": {"rlf']
)
def test_settings_that_cannot_be_read_are_told_and_never_taken_for_the_defaults(tmp_path: Path, text: str) -> None:
    record_untagged(tmp_path / "run")
    (tmp_path / "run" / "rollouts.settings.json").write_text(text)
    with pytest.raises(WorkbenchError, match="damaged"):
        configs_of(Runs(tmp_path), "run")


def test_what_nobody_asked_for_is_not_paid(tmp_path: Path) -> None:
    """KLCF pays −1 for the missing tags, whatever the answer says: of rows that nobody read for it, that is no reward."""
    record_untagged(tmp_path / "run")
    runs = Runs(tmp_path)
    opened = open_row(runs, "run", "r0")
    klcf = opened.feedback.rewards["klcf"]
    assert klcf.value is None and klcf.error is not None
    missing = "the truth of its claims and the facts of a checklist"
    assert klcf.error.message == f"KLCF was not asked for when this answer was checked: no verdict on {missing}"
    found = json.loads(rollouts(runs, "run", 0, "disagreement"))
    assert found["methods"] == ["truthrl"] and found["scored"]["klcf"] == [0, 3] and found["scored"]["truthrl"] == [3, 3]
    assert set(found["unscored"]) == {"rlfh", "forag", "klcf", "knowrl"} and "not asked for" in found["unscored"]["klcf"]
    assert [row["disagreement"] for row in found["rows"]] == [None] * 3  # one method alone does not disagree
    again = what_if({"key": json.loads(show(opened))["key"]})["view"]["methods"]
    assert again["klcf"]["value"] is None and again["truthrl"]["value"] == 1.0
    # Without the terms that need verdicts, the form is all that is asked for; and what the run itself was paid stays.
    form = what_if({"key": json.loads(show(opened))["key"], "settings": {"klcf": {"w_check": 0}}})["view"]["methods"]["klcf"]
    assert form["value"] is None and "the truth of its claims" in form["error"]["message"]
    record_untagged(tmp_path / "asked", "klcf")
    assert open_row(Runs(tmp_path), "asked", "r2").feedback.rewards["klcf"].value == -1.0


def test_a_row_with_every_verdict_is_paid_for_its_broken_form() -> None:
    row = worked_example()
    broken = replace(row, response=replace(row.response, text=row.response.text.replace("</think>", "<think/>")))
    [found] = paid([broken], method_configs())
    assert found.rewards["klcf"].value == -1.0


def test_what_a_trainer_logged_is_no_method(tmp_path: Path) -> None:
    record_logged(tmp_path / "run")
    runs = Runs(tmp_path)
    assert own_method(runs, "run") == "" and order_choices("")[0][0] == "Logged reward, lowest first"
    found = json.loads(rollouts(runs, "run", 2, "highest"))
    assert found["methods"] == [] and found["logged"] == ["trl:accuracy", "trl:format", "trl:completion_length"]
    assert [row["values"]["trl:accuracy"] for row in found["rows"]] == [2, 2, 0, 0]  # by accuracy + format
    assert [row["disagreement"] for row in found["rows"]] == [None] * 4
    opened = open_row(runs, "run", found["rows"][0]["id"])
    data = opened.data()
    assert list(data["methods"]) == list(METHODS) and data["method"] == "rlfh"
    assert data["logged"] == {"trl:accuracy": 2.0, "trl:format": 0.5, "trl:completion_length": 20.0}
    assert all(method["value"] is None for method in data["methods"].values())
    assert "error" not in what_if({"key": json.loads(show(opened))["key"]})


def test_the_sum_of_a_trainer_s_columns_is_the_reward() -> None:
    assert reward_columns(["trl:accuracy", "trl:format", "trl:completion_length", "rlfh"]) == ["trl:accuracy", "trl:format"]
    assert reward_columns(["verl:acc", "verl:score"]) == ["verl:score"]
    assert reward_columns(["verl:score", "verl:reward"]) == ["verl:reward"]
    assert reward_columns(["trl:length"]) == []
    assert reward_columns(["trl:strength"]) == ["trl:strength"]


def curves(folder: Path, name: str) -> dict[str, Any]:
    found = json.loads(curve_data(Runs(folder), name, None, 1))
    return {one["title"]: found["runs"][0]["series"][one["name"]] for one in found["series"]}


def test_the_rows_of_an_imported_run_draw_its_curves(tmp_path: Path) -> None:
    """By hand: accuracy 0 and `step` in each group, format ½; so the mean reward is step/2 + ½, a group's spread step/√2."""
    record_logged(tmp_path / "run")
    drawn = curves(tmp_path, "run")
    assert drawn["Reward"] == [1.0, 1.5]
    assert drawn["Spread of the reward in a group"] == pytest.approx([0.5**0.5, 2**0.5])
    assert drawn["Logged, accuracy"] == [0.5, 1.0] and drawn["Logged, format"] == [0.5, 0.5]
    assert drawn["Logged, completion length"] == [10, 20]
    assert drawn["Rows not scored"] == [0, 0] and drawn["Accuracy"] == drawn["Cut off"] == [None, None]
    assert drawn["Length, tokens"] == [1.5, 1.5]  # words: the prompt's one, and none or one "So"


def test_the_curves_of_what_was_scored_of_an_imported_run(tmp_path: Path) -> None:
    rows = [
        {"input": "Where?", "output": output, "gts": "Paris", "score": 0.0, "step": step}
        for step, outputs in ((1, ("Rome.", "Paris.")), (2, ("Paris.", "I don't know.")))
        for output in outputs
    ]
    import_completions("verl", write(tmp_path / "7.json", rows), tmp_path / "logged" / "rollouts.jsonl")
    score_file(Options(tmp_path / "logged" / "rollouts.jsonl", tmp_path / "run" / "rollouts.jsonl", "truthrl", "world"))
    drawn = curves(tmp_path, "run")
    assert drawn["Reward"] == [0.0, 0.5] and drawn["Reward, outcome"] == [0.0, 0.5]
    assert (drawn["Accuracy"], drawn["Abstention"], drawn["Hallucination"]) == ([0.5, 0.5], [0, 0.5], [0.5, 0])
    both = json.loads(curve_data(Runs(tmp_path), "run", "logged", 1))
    assert all(len(run["series"][one["name"]]) == 2 for one in both["series"] for run in both["runs"])  # each has every curve
