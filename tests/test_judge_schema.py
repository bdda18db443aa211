"""Replies that a server constrains to a schema: the label alone, and p from log-probabilities."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from benchmarks.scripted_judge import JudgeServer
from tests.helpers import examples
from workbench.judge import endpoint, render
from workbench.judge.logprobs import label_probabilities
from workbench.judge.wire import LABELS, ONE_LABEL, read, schema
from workbench.types import (
    Claim,
    Claims,
    JsonMapping,
    JsonObject,
    Passage,
    Prompt,
    Question,
    Reply,
    Response,
)
from workbench.verdicts import facts

SCHEMA = {"response_format": "schema"}
VERIFY = render("verify", question="Who?", passages=["Ada was born in Oslo."], claims=["In Rome."])
# P(correct) = .2, P(wrong) = .5 + .05, P(vague) = .05; "incorrect" is not a label
SHARES = {"wrong": 0.5, "correct": 0.2, "incorrect": 0.1, "wr": 0.05, "v": 0.05}


def token(text: str, alternatives: Mapping[str, float] | None = None) -> JsonObject:
    shares = (alternatives or {text: 1.0}).items()
    return {
        "token": text,
        "top_logprobs": [{"token": one, "logprob": math.log(share)} for one, share in shares],
    }


def completion(text: str, tokens: Sequence[Any] | None) -> web.Response:
    choice: JsonObject = {
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if tokens is not None:
        choice["logprobs"] = {"content": tokens}
    return web.json_response({"choices": [choice]})


ALONE = [token('"'), token("wrong", SHARES), token('"'), token("")]
OBJECT = [
    token('{"'),
    token("label"),
    token('":'),
    token(' "wrong', {f' "{text}': share for text, share in SHARES.items()}),
    token('"}'),
]


def replied(text: str, tokens: Any, extra: JsonMapping = SCHEMA) -> Reply:
    """The reply to one prompt by a server that always sends this text with these tokens."""
    with JudgeServer(lambda *_: completion(text, tokens)) as server:
        [reply] = endpoint(server.url, "m", extra=extra)([VERIFY])
    assert server.requests == 1
    return reply


def test_the_label_alone_is_read_with_its_probability() -> None:
    """p = P(correct) / P(a label) = .2 / (.2 + .05 + .55) = .25."""
    with JudgeServer(lambda *_: completion('"wrong"', ALONE), keep_bodies=True) as server:
        [reply] = endpoint(server.url, "m", extra=SCHEMA)([VERIFY])
    assert reply.text == '{"label": "wrong"}' and reply.p == pytest.approx(0.25)
    [body] = server.bodies
    assert body["response_format"]["json_schema"]["schema"] == {
        "type": "string",
        "enum": ["correct", "vague", "wrong"],
    }
    assert body["logprobs"] is True and body["top_logprobs"] == 20


def test_the_claim_is_last_so_that_servers_can_cache_the_prefix() -> None:
    claims = ["In Rome.", "In Oslo."]
    prompts = [
        render("verify", question="Who?", passages=["Ada was born in Oslo."], claims=[claim])
        for claim in claims
    ]
    with JudgeServer(lambda *_: completion('"wrong"', None), keep_bodies=True) as server:
        endpoint(server.url, "m", extra=SCHEMA, concurrency=1)(prompts)
    texts = [body["messages"][0]["content"] for body in server.bodies]
    assert [text.rpartition("<claim>")[2] for text in texts] == [
        f"{claim}</claim>\n" for claim in claims
    ]
    assert texts[0].rpartition("<claim>")[0] == texts[1].rpartition("<claim>")[0]
    # the instructions do not depend on the data
    assert texts[0].index("JSON strings") < texts[0].index("<question>")


def test_probabilities_are_read_from_an_object_if_the_options_ask_for_them() -> None:
    reply = replied('{"label": "wrong"}', OBJECT, {"logprobs": True, "top_logprobs": 5})
    assert reply.text == '{"label": "wrong"}' and reply.p == pytest.approx(0.25)


@pytest.mark.parametrize(
    "tokens",
    examples("unreadable_logprobs"),
    ids=["none", "empty", "text", "chosen only", "no number", "other text", "no label"],
)
def test_a_label_without_readable_probabilities_has_no_p(tokens: Any) -> None:
    reply = replied('"wrong"', tokens)
    assert reply.text == '{"label": "wrong"}' and reply.p is None and reply.error is None


def test_a_label_that_only_the_constraint_causes_is_a_failure() -> None:
    """P(a label) = .3 + .1 < .5: the model would not reply with a label."""
    weak = [token('"'), token("wrong", {"The": 0.6, "wrong": 0.3, "correct": 0.1}), token('"')]
    reply = replied('"wrong"', weak)
    assert reply.text is None and reply.error and reply.error.stage == "parse"
    assert "P(a label) is 0.40" in reply.error.message


@pytest.mark.parametrize("text", ['"right"', "wrong", '{"label": "wrong"}', '["wrong"]', '""'])
def test_a_server_that_ignores_the_constraint_is_parsed_as_strictly(text: str) -> None:
    with JudgeServer(lambda *_: completion(text, None)) as server:
        [reply] = endpoint(server.url, "m", extra=SCHEMA)([VERIFY])
    assert reply.text is None and reply.error and reply.error.stage == "parse"


def test_every_task_has_the_schema_of_its_reply() -> None:
    points, ratings = examples("reply_schemas")
    outline = render("outline", question="Q?", passages=["1", "2"])
    assert schema(outline)["properties"]["points"] == points
    inform = render("inform", question="Q?", response="R.", claims=["A.", "B.", "C."])
    assert schema(inform)["properties"]["ratings"] == ratings
    checklist = render("checklist", question="Q?", response="R.", items=["A."])
    labels = schema(checklist)["properties"]["labels"]["items"]
    assert labels["enum"] == ["consistent", "contradictory", "missing"]
    assert schema(render("extract", question="Q?", response="R."))["required"] == ["sentences"]
    for task in ONE_LABEL:
        labels = schema(Prompt(task, ""))["enum"]
        assert [read(task, json.dumps(label), constrained=True) for label in labels] == labels


def test_labels_of_a_task_have_different_first_letters() -> None:
    """A token may have only the first letters of a label."""
    for task in ONE_LABEL:
        assert len({label[0] for label in LABELS[task]}) == len(LABELS[task])


def test_a_probability_is_read_after_thinking_that_names_a_label() -> None:
    thoughts = [token("<think>"), token("wrong", {"wrong": 0.9}), token("</think>")]
    found = label_probabilities("verify", "wrong", {"content": [*thoughts, *ALONE]})
    assert found == pytest.approx({"correct": 0.2, "vague": 0.05, "wrong": 0.55})


def test_the_probability_is_cached_with_the_reply_in_a_file_of_an_earlier_version(
    tmp_path: Path,
) -> None:
    file = tmp_path / "judge.sqlite"
    with JudgeServer(lambda *_: completion('{"label": "wrong"}', None)) as server:
        endpoint(server.url, "m", cache=file)([VERIFY])
        with closing(sqlite3.connect(file)) as connection:  # as earlier versions made it
            connection.execute("DROP TABLE probabilities")
        [old] = endpoint(server.url, "m", cache=file)([VERIFY])
        assert old.cost.cached == 1 and old.p is None and server.requests == 1
        server.reply = lambda *_: completion('"wrong"', ALONE)
        for cached in (0, 1):  # the response format is part of the key
            [new] = endpoint(server.url, "m", cache=file, extra=SCHEMA)([VERIFY])
            assert new.p == pytest.approx(0.25) and new.cost.cached == cached
    assert server.requests == 2


def test_the_verdict_on_a_claim_has_the_probability() -> None:
    question = Question("q", "Where was Ada born?", passages=(Passage("p", "", "Born in Oslo."),))
    response = Response("r", question, "In Rome.")
    claims = Claims(((0, 8),), (Claim(0, "Ada was born in Rome.", sentence=0),))
    with JudgeServer(lambda *_: completion('"wrong"', ALONE)) as server:
        judge = endpoint(server.url, "m", extra=SCHEMA)
        [checked] = facts(judge, informativeness=False)([(response, claims)])
    [verdict] = checked.verdicts
    assert (verdict.label, verdict.p) == ("wrong", pytest.approx(0.25))
