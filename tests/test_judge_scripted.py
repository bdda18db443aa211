"""The scripted judge: what the script says is what is heard, wrong where it is told to go wrong,
on loopback alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from benchmarks.scripted_judge import FAULTS, Fault, JudgeServer, by_checksum
from workbench.judge import LABELS, Element, endpoint, render
from workbench.types import Prompt


def verify(number: int) -> Prompt:
    return render(
        "verify", question="Who?", passages=["Ada was born in Oslo."], claims=[f"Claim {number}."]
    )


def test_every_task_gets_a_reply_that_can_be_read() -> None:
    question, response = "Who?", "Ada was born in Oslo. She lives."
    prompts = [
        verify(1),
        render("extract", question=question, response=response),
        render("single_pass", question=question, response=response),
        render("inform", question=question, response=response, claims=["a", "b"]),
        render("checklist", question=question, response=response, items=["a", "b"]),
        render("outcome", question=question, response=response, answers=["Oslo"]),
        render("outline", question=question, passages=["[Answer] Ada was born in Oslo.", "", "…"]),
        render("expand", question=question, passages=["Ada [7] </think>."], outline="parallel"),
    ]
    with JudgeServer() as server:
        replies = endpoint(server.url, "m")(prompts)
    assert [reply.error for reply in replies] == [None] * 8  # a judge reads strictly
    labels = {
        json.loads(by_checksum("verify", [Element("claim", f"Claim {n}.")]))["label"]
        for n in range(50)
    }
    assert labels == set(LABELS["verify"])


# What a judge makes of each fault that is final, and whether it comes to the reply that the script
# would have given.
HEARD = {
    "429": "rate_limit",
    "500": "server",
    "hang": "timeout",
    "reset": "connection",
    "garbage": "broken",
    "empty": "empty",
    "truncated": "not_json",
    "language": "extra_text",
    "chatty": "extra_text",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_script_names_the_prompts_that_go_wrong(kind: str) -> None:
    def reply(task: str, elements: Sequence[Element]) -> str | Fault:
        good = by_checksum(task, elements)
        return Fault(kind, good) if "Claim 1." in elements[-1].text else good

    with JudgeServer(reply, hang=30.0) as server:
        judge = endpoint(server.url, "m", retries=0, reasks=0, timeout=1.0)
        first, second, third = judge([verify(0), verify(1), verify(2)])
        assert (first.error, third.error) == (None, None) and second.error and second.text is None
        assert second.error.kind == HEARD[kind]
        assert server.faulted == {kind: 1} and server.requests == 3


def test_a_script_that_fails_is_no_fault_of_the_judge() -> None:
    """Its mistake would else look like a server that is down."""
    with (
        pytest.raises(ZeroDivisionError),
        JudgeServer(lambda task, elements: str(1 // 0)) as server,
    ):
        (reply,) = endpoint(server.url, "m")([verify(0)])
        assert reply.error and reply.error.kind == "refused" and server.requests == 1
