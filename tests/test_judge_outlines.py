"""A judge that writes planned answers: valid replies are kept verbatim, others are failures."""

import json
from typing import Any

import pytest

from tests.helpers.scripted import ScriptedJudge
from workbench.judge.outlines import outlines
from workbench.text.outline import Outline, Point, read_outline
from workbench.types import Cost, Failure, JsonObject, Passage, Question
from workbench.verdicts.checks import judge_checks

SHOWN = (Passage("a", "", "Ada lives in Oslo."), Passage("b", "Bo", "Bo lives in Rome."))
ASKED = Question("q", "Where are they?", passages=SHOWN)
PLAN: JsonObject = {
    "structure": "Comparison",
    "points": [{"text": "Bo's  city", "passage": 2}, {"text": "Ada's", "passage": 1}],
}
REPLY = "Bo lives in Rome [2]. Ada lives in Oslo [1]."
TEXT = f"[Structure] comparison\n[Outline]\n1. Bo's city [2]\n2. Ada's [1]\n[Answer]\n{REPLY}"


def scripted(plan: Any = PLAN, answer: Any = {"answer": REPLY}) -> ScriptedJudge:  # noqa: B006
    return ScriptedJudge(lambda task, output: plan if task == "outline" else answer)


def test_an_outline_is_requested_and_then_its_answer() -> None:
    judge = scripted()
    first, second = outlines(judge)([ASKED, Question("r", "And now?", passages=SHOWN)])
    assert first.response.text == second.response.text == TEXT and first.error is None
    assert read_outline(TEXT) == Outline(
        "comparison", (Point("Bo's city", 2), Point("Ada's", 1)), REPLY
    )
    assert (first.response.id, first.response.question, first.response.source) == (
        "q/0",
        ASKED,
        "words",
    )
    assert first.cost == Cost(calls=2, tokens_in=20, tokens_out=4) and first.response.offsets[-1][
        1
    ] == len(TEXT)
    # one batch per task
    tasks = [[prompt.task for prompt in batch] for batch in judge.batches]
    assert tasks == [["outline"] * 2, ["expand"] * 2]
    assert "<outline>comparison\n1. Bo's city [2]\n2. Ada's [1]</outline>" in judge.prompts[2].text
    assert all("<materials>\n<passage>Ada lives" in prompt.text for prompt in judge.prompts)
    written = judge_checks(judge).write
    assert written is not None and written([ASKED])[0].response == first.response


DOWN = Failure("judge", "connection", "nobody there")
BAD_PLANS: dict[str, tuple[Any, str]] = {
    "no server": (DOWN, "connection"),
    "words around it": (f"Here it is: {json.dumps(PLAN)}", "extra_text"),
}
BAD_ANSWERS: dict[str, tuple[Any, str]] = {
    "no server": (DOWN, "connection"),
    "nothing": ({"answer": ""}, "blank"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_an_invalid_outline_is_a_failure_and_no_answer_is_requested(case: str) -> None:
    plan, kind = BAD_PLANS[case]
    judge = scripted(plan)
    [found] = outlines(judge)([ASKED])
    assert found.error is not None and found.error.kind == kind and found.response.text == ""
    assert [prompt.task for prompt in judge.prompts] == ["outline"]


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_an_invalid_answer_is_a_failure_without_the_outline(case: str) -> None:
    answer, kind = BAD_ANSWERS[case]
    [found] = outlines(scripted(answer=answer))([ASKED])
    assert found.error is not None and found.error.kind == kind and found.response.text == ""
