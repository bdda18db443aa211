"""A judge that writes planned answers: what has the form is kept word for word, and everything
else is a failure.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from workbench.judge.outlines import outlines
from workbench.text.outline import Outline, Point, read_outline
from workbench.types import Cost, Failure, Passage, Prompt, Question, Reply
from workbench.verdicts.checks import judge_checks

SHOWN = (Passage("a", "", "Ada lives in Oslo."), Passage("b", "Bo", "Bo lives in Rome."))
ASKED = Question("q", "Where are they?", passages=SHOWN)
PLAN: dict[str, Any] = {
    "structure": "Comparison",
    "points": [{"text": "Bo's  city", "passage": 2}, {"text": "Ada's", "passage": 1}],
}
REPLY = "Bo lives in Rome [2]. Ada lives in Oslo [1]."
TEXT = f"[Structure] comparison\n[Outline]\n1. Bo's city [2]\n2. Ada's [1]\n[Answer]\n{REPLY}"


class Scripted:
    """Says `plan` of every outline and `answer` of every expansion, and keeps what it was asked."""

    def __init__(self, plan: Any = PLAN, answer: Any = REPLY) -> None:
        self.plan, self.answer, self.asked = plan, answer, list[Prompt]()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        self.asked += prompts
        return [self._reply(prompt.task) for prompt in prompts]

    def _reply(self, task: str) -> Reply:
        said = self.plan if task == "outline" else self.answer
        if isinstance(said, Failure):
            return Reply(None, said)
        text = (
            said
            if isinstance(said, str) and said.startswith("raw:")
            else json.dumps(said if task == "outline" else {"answer": said})
        )
        return Reply(text.removeprefix("raw:"), cost=Cost(calls=1, tokens_in=10))


def test_an_outline_and_then_the_answer_along_it() -> None:
    judge = Scripted()
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
    assert first.cost == Cost(calls=2, tokens_in=20) and first.response.offsets[-1][1] == len(TEXT)
    assert [prompt.task for prompt in judge.asked] == [
        "outline",
        "outline",
        "expand",
        "expand",
    ]  # all of a kind go out together
    assert "<outline>comparison\n1. Bo's city [2]\n2. Ada's [1]</outline>" in judge.asked[2].text
    assert all("<materials>\n<passage>Ada lives" in prompt.text for prompt in judge.asked)
    written = judge_checks(judge).write
    assert written is not None and written([ASKED])[0].response == first.response


DOWN = Failure("judge", "connection", "nobody there")
BAD_PLANS: dict[str, tuple[Any, str]] = {
    "no server": (DOWN, "connection"),
    "words around it": (f"raw:Here it is: {json.dumps(PLAN)}", "extra_text"),
}
BAD_ANSWERS: dict[str, tuple[Any, str]] = {
    "no server": (DOWN, "connection"),
    "nothing": ("", "blank"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_what_is_no_outline_is_a_failure_and_nothing_is_written_along_it(case: str) -> None:
    plan, kind = BAD_PLANS[case]
    judge = Scripted(plan)
    [found] = outlines(judge)([ASKED])
    assert found.error is not None and found.error.kind == kind and found.response.text == ""
    assert [prompt.task for prompt in judge.asked] == ["outline"]


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_what_is_no_answer_is_a_failure_and_no_outline_stands_alone(case: str) -> None:
    answer, kind = BAD_ANSWERS[case]
    [found] = outlines(Scripted(answer=answer))([ASKED])
    assert found.error is not None and found.error.kind == kind and found.response.text == ""
