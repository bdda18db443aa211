"""The public API: `workbench.score` and `workbench.rescore` refuse arguments they would ignore."""

from typing import Any

import pytest

from tests.helpers.errors import raises_error
from workbench import Question, Response, rescore, score

TEXT = "Dramem Torusin is a zoologist."


def test_a_response_is_scored_and_rescored_by_the_closed_world() -> None:
    row = score(TEXT, "Who is Dramem Torusin?", method="rlfh", judge="world")
    [claim] = [verdict for verdict in row.verdicts if verdict.aspect == "fact"]
    assert claim.label == "correct" and row.rewards["rlfh"].value is not None
    again = rescore(row, "rlfh", ["rlfh.alpha=0", "rlfh.beta=0"]).rewards["rlfh"]
    assert again.value == 0.0 != row.rewards["rlfh"].value
    several = score([row.response, row.response], method="rlfh", judge="world")
    assert [one.rewards["rlfh"] for one in several] == [row.rewards["rlfh"]] * 2


@pytest.mark.parametrize("option", ["judge_model", "store"])
def test_a_server_option_requires_a_judge_at_a_url(option: str) -> None:
    given: dict[str, Any] = {option: "x"}
    with raises_error("needs a judge at a URL"):
        score(TEXT, judge="local", **given)


def test_a_field_of_a_question_is_refused_with_a_response() -> None:
    response = Response("", Question("", "Who?"), TEXT)
    with raises_error("answers is an argument for a text"):
        score(response, judge="world", answers=["x"])


def test_an_unknown_method_or_judge_is_refused() -> None:
    with raises_error("no method 'rhlf'"):
        score(TEXT, judge="world", method="rhlf")
    with raises_error("no judge 'wrold'"):
        score(TEXT, judge="wrold")
